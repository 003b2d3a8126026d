// ImageRequest: says which part of an image a loader needs, at which size. A dataset that can
// decode a part of an image (Dataset::get_for) need not decode all of it.
#pragma once
#include <binade/core/owned.h>
#include <binade/data/transforms.h>

#include <exception>
#include <span>
#include <string_view>

namespace binade::data {

struct DecodeOptions;
namespace internal {
class Geometry;
}

// For one sample, on one thread. The transform and the random numbers must outlive it.
class ImageRequest {
 public:
  // `reducing_gap` as in LoaderOptions.
  ImageRequest(const Transform& transform, const philox::Stream& random, double reducing_gap = 0);
  ~ImageRequest();
  ImageRequest(const ImageRequest&) = delete;
  ImageRequest& operator=(const ImageRequest&) = delete;

  // False if the transform does not begin with a window: then all of the image is needed.
  bool has_window() const;
  // The crops and resizes that the transform begins with, done on a whole image.
  Image apply(const Image& image);
  // Decodes a file and does the same. Of a JPEG it decodes only the needed part, with the same
  // pixels. The whole file is read and checked in any case. Errors are those of decode_image().
  Image decode(std::span<const uint8_t> bytes, std::string_view path, const DecodeOptions& options);

  double reducing_gap() const { return reducing_gap_; }
  // The number of steps of the transform that are done.
  size_t steps() const { return steps_; }
  // True if a step of the transform has thrown: then the sample is not at fault.
  bool has_failed() const { return failed_; }

  // For decoders, once: draws the windows, for an image of that size.
  const internal::Geometry& plan(int height, int width);

 private:
  const Transform& transform_;
  const philox::Stream& random_;
  double reducing_gap_;
  size_t steps_ = 0;
  bool failed_ = false;
  Owned<internal::Geometry> plan_;
};

}  // namespace binade::data
