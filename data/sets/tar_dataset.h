// TarDataset: samples in tar files, as webdataset writes them: the members KEY.jpg, KEY.cls, ... of
// one key, which follow each other, are one sample. The key ends at the first dot after the last
// slash.
//
//   data::TarDataset photos("shards");   // shards/*.tar
//
// Opening reads all headers; after that samples have random access. The index takes 24 bytes per
// sample. Compressed archives (tar.gz) have no random access: unpack them, or pack them once
// (`binade pack`), which also adds checksums.
#pragma once
#include <binade/data/dataset.h>
#include <binade/data/decode.h>

#include <memory>
#include <string>

namespace binade::data {

struct TarOptions {
  // The member with the class, a whole number in decimal digits; samples need none.
  std::string label = "cls";
  // Members that become fields of their own name: tensors [bytes] u8.
  std::vector<std::string> fields = {};
  DecodeOptions decode = {.channels = 3};  // of the first member with the extension of an image
};

class TarDataset : public Dataset {
 public:
  // A tar file, or a folder whose *.tar are read in the order of their names. Throws Error that
  // names file and byte if one is damaged, and if a label is no class.
  explicit TarDataset(const std::string& path, TarOptions options = {});

  int64_t size() const override;
  Sample get(int64_t index) const override;
  void read(int64_t index, ImageRequest& request, Sample& sample) const override;
  bool will_need(int64_t index) const override;
  std::optional<std::vector<uint8_t>> encoded(int64_t index) const override;
  void read_encoded(int64_t index, std::span<const uint8_t> bytes, ImageRequest& request,
                    Sample& sample) const override;
  int64_t class_count() const override;                   // one more than the largest label
  std::vector<std::string> class_names() const override;  // "0", "1", ...
  int channels() const override;
  std::string describe(int64_t index) const override;  // "shards/0.tar: photos/1.jpg"
  uint64_t id(int64_t index) const override;           // of the key
  std::optional<int64_t> label(int64_t index) const override;

 private:
  struct Files;
  std::shared_ptr<const Files> files_;  // shared by copies
};

// True if the folder has a file *.tar.
bool has_tar_files(const std::string& directory);

}  // namespace binade::data
