// ImageTable: files, targets and masks by row.
#include <binade/core/io/hash64.h>
#include <binade/data/fields_internal.h>
#include <binade/data/folder_listing_internal.h>
#include <binade/data/listing/listing_cache_internal.h>
#include <binade/data/sets/image_table.h>
#include <binade/data/window/image_request.h>

#include <algorithm>
#include <filesystem>

namespace binade::data {
namespace {

namespace fs = std::filesystem;

// Fields of the table that are no fields of the samples.
constexpr char kFile[] = "\nfile", kMask[] = "\nmask";

void check_inside(const std::string& file, const std::string& where) {
  const fs::path path(file);
  const bool leaves =
      std::any_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
  check(!file.empty() && path.is_relative() && !leaves, where, ": got the path '", file,
        "', expected one inside of the folder");
}

}  // namespace

ImageTable::ImageTable(ImageTableOptions options) : options_(std::move(options)) {
  const ImageTableOptions& o = options_;
  check(o.decode.channels == 1 || o.decode.channels == 3, "image table: got channels ",
        o.decode.channels, ", expected 1 or 3");
  check(folder_exists(o.folder), o.folder, ": image table: no such folder");
  check(o.masks.empty() || folder_exists(o.masks), o.masks,
        ": image table: no such folder of masks");
  check(o.mask_column.empty() || (!o.table.empty() && !o.masks.empty()),
        "image table: got mask_column, which needs a table and the folder `masks`");
  check(!o.table.empty() || (o.fields.empty() && o.columns.empty()),
        "image table: got columns or fields without a table");
  if (o.table.empty()) {
    list_folder();
  } else {
    read_table();
  }
  check(!files_.empty(), o.folder, ": image table: no images");
  if (o.checksums != Checksums::ignore) {
    std::optional<ChecksumManifest> manifest = ChecksumManifest::find(o.folder);
    check(manifest || o.checksums != Checksums::require, o.folder, ": no ", kChecksumFile,
          " in the folder or above; write one with: binade checksum ", o.folder);
    if (manifest) {
      manifest_ = std::make_shared<ChecksumManifest>(std::move(*manifest));
    }
  }
}

void ImageTable::list_folder() {
  ListingCache listings(options_.listing_cache);
  FolderListing listing(options_.folder, OutsideLinks::follow, &listings);
  files_ = listing.images(options_.folder);
  listings.save();
  listing.report();
}

void ImageTable::read_table() {
  const ImageTableOptions& o = options_;
  CsvOptions csv{.columns = o.columns, .fields = o.fields, .checksums = o.checksums};
  csv.columns.push_back({.name = o.file_column, .type = CsvType::text});
  if (!o.mask_column.empty()) {
    csv.columns.push_back({.name = o.mask_column, .type = CsvType::text});
  }
  if (o.fields.empty()) {  // all other columns are the numbers "labels"
    const CsvDataset all(o.table, csv);
    for (const std::string& name : all.field_names()) {
      if (name == "x") {
        csv.fields.push_back({"labels", {}});
        continue;
      }
      if (name != o.file_column && name != o.mask_column) {
        csv.fields.push_back({name, {name}});
      }
    }
    for (const std::string& name : all.column_names()) {
      const auto given = std::find_if(csv.columns.begin(), csv.columns.end(),
                                      [&](const CsvColumn& column) { return column.name == name; });
      if (given == csv.columns.end() || given->type == CsvType::number) {
        csv.fields.front().columns.push_back(name);
      }
    }
  }
  csv.fields.push_back({kFile, {o.file_column}});
  if (!o.mask_column.empty()) {
    csv.fields.push_back({kMask, {o.mask_column}});
  }
  table_ = std::make_shared<CsvDataset>(o.table, std::move(csv));
  files_ = table_->texts(kFile);
  masks_ = o.mask_column.empty() ? std::vector<std::string>{} : table_->texts(kMask);
  for (int64_t i = 0; i < table_->size(); ++i) {
    const auto row = static_cast<size_t>(i);
    if (!table_->is_wrong(i)) {
      check_inside(files_[row], table_->describe(i));
      if (!masks_.empty()) {
        check_inside(masks_[row], table_->describe(i));
      }
    }
  }
}

std::string ImageTable::mask_path(int64_t index) const {
  const auto row = static_cast<size_t>(index);
  if (!masks_.empty()) {
    return (fs::path(options_.masks) / masks_[row]).native();
  }
  const fs::path path = fs::path(options_.masks) / files_[row];
  for (const char* extension : {".png", ".bmp", ".pgm", ".pbm", ".pnm", ".pam", ".tga"}) {
    fs::path candidate = path;
    candidate.replace_extension(extension);
    std::error_code ignored;
    if (fs::exists(candidate, ignored)) {
      return candidate.native();
    }
  }
  fail(path.native(),
       ": no mask with this name and the extension png, bmp, pgm, pbm, pnm, pam or tga");
}

std::vector<uint8_t> ImageTable::read_bytes(const std::string& path) const {
  std::vector<uint8_t> bytes = read_file(path, options_.decode.limits.max_file_bytes);
  if (manifest_ && !manifest_->name_of(path).empty()) {
    const ChecksumEntry* entry = manifest_->find_file(path);
    check(entry != nullptr, path, ": not listed in ", manifest_->path());
    verify_checksum(path, entry->sum, bytes);
  }
  return bytes;
}

// Sample `index` without image and masks.
Sample ImageTable::row(int64_t index) const {
  check(index >= 0 && index < size(), "image table: got index ", index, ", expected one of ",
        size());
  Sample sample = table_ ? table_->get(index) : Sample{};
  sample.set(kFile, {});
  sample.set(kMask, {});
  return sample;
}

Sample ImageTable::get_for(int64_t index, ImageRequest& request) const {
  if (!options_.masks.empty()) {
    return get(index);  // masks change with the whole image
  }
  Sample sample = row(index);
  const std::string path = describe(index);
  sample.image = request.decode(read_bytes(path), path, options_.decode);
  return sample;
}

Sample ImageTable::get(int64_t index) const {
  Sample sample = row(index);
  const std::string origin = describe(index);
  sample.image = decode_image(read_bytes(origin), origin, options_.decode);
  if (!options_.masks.empty()) {
    DecodeOptions decode = options_.decode;
    decode.channels = 0;
    decode.target_side = 0;
    const std::string path = mask_path(index);
    Image mask = decode_image(read_bytes(path), path, decode);
    check(mask.channels == 1, path,
          ": the mask is a picture in colour or with a palette, expected "
          "8 bits of grey: the class of each pixel");
    check(mask.height == sample.image.height && mask.width == sample.image.width, path,
          ": the mask is ", mask.height, " x ", mask.width, ", expected ", sample.image.height,
          " x ", sample.image.width, ", the size of its image");
    sample.masks.emplace_back(options_.mask_name, std::move(mask));
  }
  return sample;
}

int64_t ImageTable::class_count() const { return std::ssize(class_names()); }

std::vector<std::string> ImageTable::class_names() const {
  return table_ ? table_->class_names() : std::vector<std::string>{};
}

std::string ImageTable::describe(int64_t index) const {
  check(index >= 0 && index < size(), "image table: got index ", index, ", expected one of ",
        size());
  const std::string& file = files_[static_cast<size_t>(index)];
  return file.empty() ? table_->describe(index) : (fs::path(options_.folder) / file).native();
}

uint64_t ImageTable::id(int64_t index) const {
  Hash64 hash;
  hash.add(files_[static_cast<size_t>(index)]);
  if (table_) {
    hash.add(table_->id(index));
  }
  return hash.value();
}

std::optional<int64_t> ImageTable::label(int64_t index) const {
  return table_ ? table_->label(index) : std::nullopt;
}

}  // namespace binade::data
