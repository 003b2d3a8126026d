// ImageRequest: draws the windows of a transform before the pixels are known.
#include <binade/data/decode_internal.h>
#include <binade/data/window/geometry_internal.h>
#include <binade/data/window/image_request.h>

namespace binade::data {

ImageRequest::ImageRequest(const Transform& transform, const philox::Stream& random,
                           double reducing_gap)
    : transform_(transform), random_(random), reducing_gap_(reducing_gap) {}
ImageRequest::~ImageRequest() = default;

bool ImageRequest::has_window() const {
  return !transform_.steps_.empty() && transform_.steps_.front().window != nullptr;
}

const internal::Geometry& ImageRequest::plan(int height, int width) {
  check(has_window() && plan_ == nullptr,
        "image request: it has no window, or has been carried out already; use it for one image");
  try {
    for (const Transform::Step& step : transform_.steps_) {
      if (!step.window) {
        break;
      }
      philox::Stream random = random_.part(steps_);
      if (plan_ == nullptr) {
        plan_ =
            std::make_unique<internal::Geometry>(step.window(height, width, random), height, width);
      } else if (!plan_->add(step.window(plan_->height(), plan_->width(), random))) {
        break;
      }
      ++steps_;
    }
  } catch (...) {
    failed_ = true;
    throw;
  }
  return *plan_;
}

Image ImageRequest::apply(const Image& image) {
  Image out;
  plan(image.height, image.width).apply(internal::view_of(image), out);
  return out;
}

Image ImageRequest::decode(std::span<const uint8_t> bytes, std::string_view path,
                           const DecodeOptions& options) {
  // Only a JPEG can be decoded in part, and only without target_side, which ignores the window.
  if (has_window() && options.target_side == 0 && internal::can_decode_part(bytes)) {
    return internal::decode_part(bytes, path, options, *this);
  }
  Image image = decode_image(bytes, path, options);
  return has_window() ? apply(image) : image;
}

}  // namespace binade::data
