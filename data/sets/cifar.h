// CifarDataset: the binary files of CIFAR-10 and CIFAR-100, and others of their layout.
//
//   data::CifarDataset train("cifar-10-batches-bin", data::Part::train);
//
// CIFAR-10: data_batch_1.bin, data_batch_2.bin, ... and test_batch.bin, records of a label and 3072
// bytes (red, green, blue planes of 32 x 32); names in batches.meta.txt. CIFAR-100: train.bin and
// test.bin, records of a coarse label, a fine label and 3072 bytes; names in fine_label_names.txt
// and coarse_label_names.txt. The number of classes is that of the names, or without names one more
// than the largest label of both parts.
#pragma once
#include <binade/data/checksums.h>
#include <binade/data/dataset.h>

#include <string>

namespace binade::data {

enum class CifarLabels { fine, coarse };  // of CIFAR-100

class CifarDataset : public Dataset {
 public:
  // Throws Error that names the file if one is missing, is not a whole number of records, has a
  // label beyond the names, or is not what the checksum manifest says.
  CifarDataset(const std::string& directory, Part part, CifarLabels labels = CifarLabels::fine,
               Checksums checksums = Checksums::if_present);

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  Sample get(int64_t index) const override;
  void read(int64_t index, ImageRequest& request, Sample& sample) const override;
  int64_t class_count() const override { return classes_; }
  std::vector<std::string> class_names() const override;  // without a file of names "0", "1", ...
  int channels() const override { return 3; }
  std::string describe(int64_t index) const override;  // "data_batch_1.bin:7"
  uint64_t id(int64_t index) const override;           // of the pixels
  std::optional<int64_t> label(int64_t index) const override;
  bool in_memory() const override { return true; }

 private:
  void add_file(const std::string& path, bool keep, Checksums checksums);
  std::span<const uint8_t> pixels_of(int64_t index) const;

  int label_bytes_ = 1, label_at_ = 0;  // of a record
  std::vector<std::string> files_, names_;
  std::vector<int64_t> ends_;  // samples up to the end of each file
  std::vector<uint8_t> labels_;
  std::vector<uint8_t> pixels_;  // [n, 32, 32, 3]
  int64_t classes_ = 0;
};

// True if the directory has the files of both parts.
bool has_cifar_files(const std::string& directory);

}  // namespace binade::data
