// idx files (the format of MNIST and Fashion-MNIST), plain or gzip-compressed. Layout: bytes 0, 0,
// type, rank; `rank` big-endian u32 sizes; then the elements. Supported are the types 8 (u8) and,
// for labels, 11 and 12 (i16, i32, big-endian). The header is checked against the file before
// memory of its size is allocated.
#pragma once
#include <binade/data/checksums.h>
#include <binade/data/dataset.h>

#include <span>
#include <string>

namespace binade::data {

struct IdxArray {
  std::vector<int64_t> sizes;     // 1 to 4 dimensions
  std::vector<uint8_t> elements;  // row-major; big-endian if they have several bytes
  int element_bytes = 1;
};

// Limits for a file. A gzip file that unpacks to more than ratio_from bytes may not be more than
// max_ratio times smaller: MNIST's are 5 times smaller, drawings of few strokes up to 50 times.
struct IdxLimits {
  int64_t max_bytes = int64_t(4) << 30;  // unpacked
  double max_ratio = 300;
  int64_t ratio_from = int64_t(64) << 20;
  double max_seconds = 10;  // time limit to unpack; each 10 MB of the gzip file adds as much again
};

// Reads one file; gzip is recognised by content. Memory grows as bytes are unpacked. Throws an
// Error with the path if the file is missing, truncated, longer than its header says, corrupt,
// beyond the limits, or differs from the checksum manifest of its folder (data/checksums.h).
IdxArray read_idx(const std::string& path, const IdxLimits& limits = {},
                  Checksums checksums = Checksums::if_present);

// The images and labels of one part: DIR/{train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz].
class IdxDataset : public Dataset {
 public:
  // `classes` 0: the largest label of both parts, plus one.
  IdxDataset(const std::string& directory, Part part, int64_t classes = 0);
  // Any pair of files: images [n, h, w] or [n, h, w, c] u8, labels [n] < classes of u8, i16 or i32.
  // `classes` 0: the largest label of this file, plus one.
  IdxDataset(const std::string& images, const std::string& labels, int64_t classes = 0,
             Checksums checksums = Checksums::if_present);

  int64_t size() const override { return images_.sizes[0]; }
  Sample get(int64_t index) const override;
  void read(int64_t index, ImageRequest& request, Sample& sample) const override;
  int64_t class_count() const override { return classes_; }
  std::vector<std::string> class_names() const override;  // "0", "1", ...
  int channels() const override { return channels_; }
  std::string describe(int64_t index) const override;
  uint64_t id(int64_t index) const override;  // hash of the pixels
  std::optional<int64_t> label(int64_t index) const override;
  bool in_memory() const override { return true; }
  int height() const { return static_cast<int>(images_.sizes[1]); }
  int width() const { return static_cast<int>(images_.sizes[2]); }

 private:
  void copy_to(int64_t index, Sample& sample) const;
  std::span<const uint8_t> pixels_of(int64_t index) const;

  std::string path_;
  IdxArray images_;
  std::vector<int32_t> labels_;
  int64_t classes_;
  int channels_ = 1;
};

// The labels of a file of rank 1 with elements of u8, i16 or i32. Throws Error as read_idx() does,
// and for negative labels.
std::vector<int32_t> read_idx_labels(const std::string& path,
                                     Checksums checksums = Checksums::if_present);
// The largest label of such a file, plus one.
int64_t idx_classes(const std::string& labels, Checksums checksums = Checksums::if_present);

// The path of a file of one part: the plain file if it exists, else the one with .gz.
std::string idx_file(const std::string& directory, Part part, bool images);
// True if the directory has all four files, each plain or as .gz.
bool has_idx_files(const std::string& directory);

}  // namespace binade::data
