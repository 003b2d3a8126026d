// StoreDataset: the samples of a packed store, which `binade pack` or data::pack() wrote.
//
//   data::pack(photos, "photos-256", {.transform = data::resize(256, 256)});
//   data::StoreDataset store("photos-256");
//   data::Loader loader(store, {.batch = 64});
//
// Opening verifies the manifest, the size of every shard and the checksums of the index, and maps
// the shards into memory: 10^7 samples take well under a second, and their index stays in the
// system's page cache. The first read of a sample verifies its checksum. Reading raw pixels is one
// copy; with a transform that begins with a crop or resize, the crop is made from the mapping.
#pragma once
#include <binade/data/dataset.h>
#include <binade/data/decode.h>

#include <memory>
#include <string>

namespace binade::data {

// When a sample is compared with its checksum.
enum class VerifySamples { first_read, every_read, never };

struct StoreOptions {
  VerifySamples verify = VerifySamples::first_read;
  DecodeOptions decode = {};  // of images kept as JPEG, PNG, ...; `channels` 0: those of the store
};

class StoreDataset : public Dataset {
 public:
  // Throws Error that names the file if the folder is no store, the manifest was altered, or a
  // shard is missing, was cut off or has an altered index.
  explicit StoreDataset(const std::string& directory, StoreOptions options = {});

  int64_t size() const override;
  // Throws Error that names shard and place if the sample was altered.
  Sample get(int64_t index) const override;
  Sample get_for(int64_t index, ImageRequest& request) const override;
  void read(int64_t index, ImageRequest& request, Sample& sample) const override;
  bool will_need(int64_t index) const override;
  std::optional<std::vector<uint8_t>> encoded(int64_t index) const override;
  void read_encoded(int64_t index, std::span<const uint8_t> bytes, ImageRequest& request,
                    Sample& sample) const override;
  int64_t class_count() const override;
  std::vector<std::string> class_names() const override;
  int channels() const override;
  std::string describe(int64_t index) const override;  // "store/00000.bin:7 (cat/1.jpg)"
  uint64_t id(int64_t index) const override;
  std::optional<int64_t> label(int64_t index) const override;
  std::optional<int64_t> length(int64_t index, std::string_view field) const override;
  // True unless images must be decoded.
  bool in_memory() const override;

  // Compares every sample with its checksum and parses it, on all threads. Returns one line per
  // sample that is not as it was written.
  std::vector<std::string> verify() const;

 private:
  struct Files;
  std::shared_ptr<const Files> files_;  // shared by copies
};

// True if the folder has the manifest of a store.
bool is_store(const std::string& directory);

}  // namespace binade::data
