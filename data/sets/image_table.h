// ImageTable: images of one folder with targets of any kind from a CSV file, with masks, or both.
//
//   data::ImageTable photos({.folder = "photos", .table = "labels.csv", .file_column = "file",
//                            .fields = {{"price", {"price"}}, {"tags", {"indoor", "night"}}}});
//   data::ImageTable cells({.folder = "images", .masks = "masks"});   // batch["mask"] [N, H, W]
#pragma once
#include <binade/data/checksums.h>
#include <binade/data/decode.h>
#include <binade/data/listing/listing_cache.h>
#include <binade/data/sets/csv_dataset.h>

namespace binade::data {

struct ImageTableOptions {
  std::string folder;
  // One record per image: its path, relative to the folder, and its targets. Empty: every image in
  // the folder, sorted bytewise, without targets.
  std::string table = {};
  std::string file_column = "file";
  std::vector<CsvColumn> columns = {};  // as CsvOptions::columns
  // Empty: all other columns are numbers of the field "labels": several labels, or values.
  std::vector<CsvField> fields = {};
  // A folder with a picture of class ids for each image: the same path with any extension of an
  // image, 8 bits, grey. Or a column of the table with paths relative to that folder.
  std::string masks = {};
  std::string mask_column = {};
  std::string mask_name = "mask";
  DecodeOptions decode = {.channels = 3};
  Checksums checksums = Checksums::if_present;
  ListingCacheOptions listing_cache = {};  // of the folder, if there is no table
};

// A missing or broken image or mask, a mask of another size than its image, and a wrong cell are
// samples that cannot be read. Throws Error if a folder or the table cannot be read, or if there
// are no images. Paths that lead out of the folder ("../x.png", "/x.png") are errors.
class ImageTable : public Dataset {
 public:
  explicit ImageTable(ImageTableOptions options);

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  Sample get(int64_t index) const override;
  Sample get_for(int64_t index, ImageRequest& request) const override;
  int64_t class_count() const override;  // of the field "labels", if it is one category
  std::vector<std::string> class_names() const override;
  int channels() const override { return options_.decode.channels; }
  std::string describe(int64_t index) const override;
  uint64_t id(int64_t index) const override;  // of the path in the folder and of the targets
  std::optional<int64_t> label(int64_t index) const override;

 private:
  void read_table();
  void list_folder();
  std::string mask_path(int64_t index) const;
  Sample row(int64_t index) const;
  std::vector<uint8_t> read_bytes(const std::string& path) const;

  ImageTableOptions options_;
  std::shared_ptr<const CsvDataset> table_;
  std::vector<std::string> files_, masks_;  // relative to their folders
  std::shared_ptr<const ChecksumManifest> manifest_;
};

}  // namespace binade::data
