// Reads a packed store.
#include <binade/core/io/crc32c.h>
#include <binade/core/io/file_system.h>
#include <binade/data/fields_internal.h>
#include <binade/data/sample_internal.h>
#include <binade/data/store/joint_append_internal.h>
#include <binade/data/store/mapped_file_internal.h>
#include <binade/data/store/store_dataset.h>
#include <binade/data/store/store_format_internal.h>
#include <binade/data/window/geometry_internal.h>
#include <binade/data/window/image_request.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/printable.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

namespace binade::data {
namespace {

// One bit per sample: true once the sample was compared with its checksum.
class SeenSamples {
 public:
  explicit SeenSamples(int64_t samples) : bits_(static_cast<size_t>(samples + 63) / 64) {}
  bool has(int64_t index) const {
    return (bits_[static_cast<size_t>(index) / 64].load(std::memory_order_relaxed) >> (index % 64) &
            1) != 0;
  }
  void add(int64_t index) const {
    bits_[static_cast<size_t>(index) / 64].fetch_or(uint64_t{1} << (index % 64),
                                                    std::memory_order_relaxed);
  }

 private:
  mutable std::vector<std::atomic<uint64_t>> bits_;
};

struct Shard {
  MappedFile file;
  ShardEntry entry;
  int64_t first;  // sample
};

void copy_pixels(const SampleView::Picture& from, Image& to) {
  to.height = from.height;
  to.width = from.width;
  to.channels = from.channels;
  to.pixels.resize(from.pixels.size());
  std::memcpy(to.pixels.data(), from.pixels.data(), from.pixels.size());
}

internal::PixelView view_of(const SampleView::Picture& picture) {
  return {.pixels = reinterpret_cast<const uint8_t*>(picture.pixels.data()),
          .stride = ptrdiff_t{picture.width} * picture.channels,
          .channels = picture.channels,
          .height = picture.height,
          .width = picture.width};
}

std::span<const uint8_t> unsigned_bytes(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

}  // namespace

struct StoreDataset::Files {
  struct Place {
    const Shard* shard;
    Record record;
    std::span<const std::byte> bytes;
  };

  Files(const std::string& directory, StoreOptions given);
  const Shard& shard_of(int64_t index) const;
  Place find(int64_t index) const;
  Place verified(int64_t index) const;
  SampleView parsed(int64_t index, const Place& place) const;
  std::string name(int64_t index) const;
  void read(int64_t index, ImageRequest* request, Sample& sample) const;
  void read_image(const SampleView& view, int64_t index, ImageRequest* request,
                  Sample& sample) const;

  std::string directory;
  StoreOptions options;
  StoreManifest manifest;
  std::vector<Shard> shards;
  int64_t samples = 0;
  SeenSamples seen{0};
};

namespace {

// Maps a shard and verifies its first bytes and its index.
Shard open_shard(const std::string& path, const ShardEntry& entry, int64_t first) {
  Shard shard{MappedFile(path, entry.bytes), entry, first};
  const auto bytes = shard.file.bytes();
  check(std::memcmp(bytes.data(), kShardMagic.data(), kShardMagic.size()) == 0, path,
        ": does not begin like a shard of a store");
  check(crc32c(bytes.subspan(entry.index_offset())) == entry.index_crc, path,
        ": the index has another checksum than the manifest says: it was changed; restore it");
  return shard;
}

StoreManifest manifest_of_folder(const std::string& directory) {
  const std::string path = directory + "/" + kStoreManifest;
  check(is_store(directory) || !is_store(directory + "/train"), directory,
        ": is no store, but its folders train and test are; open one of them, or both by "
        "open_dataset()");
  check(file_kind(path) == "a regular file", directory, ": is no store, it has no ", kStoreManifest,
        "; make one with: binade pack DIR ", directory);
  return read_store_manifest(directory);
}

}  // namespace

StoreDataset::Files::Files(const std::string& given_directory, StoreOptions given)
    : directory(given_directory), options(given), manifest(manifest_of_folder(given_directory)) {
  if (options.decode.channels == 0) {
    options.decode.channels = std::max(manifest.channels, 0);
  }
  samples = manifest.samples();
  shards.reserve(manifest.shards.size());
  int64_t first = 0;
  for (size_t i = 0; i < manifest.shards.size(); ++i) {
    shards.push_back(open_shard(directory + "/" + shard_name(i), manifest.shards[i], first));
    first += manifest.shards[i].samples;
  }
  seen = SeenSamples(samples);
}

const Shard& StoreDataset::Files::shard_of(int64_t index) const {
  check(index >= 0 && index < samples, directory, ": got index ", index, ", expected one of ",
        samples);
  const auto after =
      std::upper_bound(shards.begin(), shards.end(), index,
                       [](int64_t i, const Shard& shard) { return i < shard.first; });
  return *(after - 1);
}

// "store/00000.bin:7".
std::string StoreDataset::Files::name(int64_t index) const {
  const Shard& shard = shard_of(index);
  return text(shard.file.path(), ":", index - shard.first);
}

StoreDataset::Files::Place StoreDataset::Files::find(int64_t index) const {
  const Shard& shard = shard_of(index);
  shard.file.check_whole_at_times();
  const uint64_t end = shard.entry.index_offset();
  Record record;
  std::memcpy(
      &record,
      shard.file.bytes().data() + end + static_cast<uint64_t>(index - shard.first) * sizeof(Record),
      sizeof(Record));
  if (record.offset < kShardMagic.size() || record.offset > end ||
      record.bytes > end - record.offset) {
    fail(name(index), ": the index says ", record.bytes, " bytes from ", record.offset, " on, of ",
         end);
  }
  if (record.label != kNoLabel && manifest.classes != 0 &&
      (record.label < 0 || record.label >= manifest.classes)) {
    fail(name(index), ": has label ", record.label, ", expected less than ", manifest.classes,
         " classes");
  }
  return {&shard, record, shard.file.bytes().subspan(record.offset, record.bytes)};
}

// The place of the sample's bytes, after a check of their checksum if VerifySamples asks for it.
StoreDataset::Files::Place StoreDataset::Files::verified(int64_t index) const {
  shard_of(index).file.check_whole();
  const Place place = find(index);
  if (options.verify == VerifySamples::never ||
      (options.verify == VerifySamples::first_read && seen.has(index))) {
    return place;
  }
  if (crc32c(place.bytes) != place.record.crc) {
    fail(name(index),
         ": the sample has another checksum than the index says: it was changed; restore ",
         place.shard->file.path());
  }
  seen.add(index);
  return place;
}

SampleView StoreDataset::Files::parsed(int64_t index, const Place& place) const {
  try {
    return parse_sample(place.bytes);
  } catch (const Error& error) {
    fail(name(index), ": ", error.what());
  }
}

void StoreDataset::Files::read(int64_t index, ImageRequest* request, Sample& sample) const {
  const Place place = verified(index);
  const SampleView view = parsed(index, place);
  sample.label = place.record.label;
  try {
    read_rest(view.rest, sample);
  } catch (const OutOfMemory&) {
    throw;
  } catch (const Error& error) {
    fail(name(index), ": ", error.what());
  }
  // A window changes the image alone; masks and boxes follow when the whole transform is applied.
  const bool alone = sample.masks.empty() && sample.boxes.empty();
  read_image(view, index, alone ? request : nullptr, sample);
}

void StoreDataset::Files::read_image(const SampleView& view, int64_t index, ImageRequest* request,
                                     Sample& sample) const {
  const bool has_window = request != nullptr && request->has_window();
  if (!view.encoded.empty()) {
    const auto bytes = unsigned_bytes(view.encoded);
    const std::string path = text(name(index), " (", view.origin, ")");
    sample.image = request != nullptr ? request->decode(bytes, path, options.decode)
                                      : decode_image(bytes, path, options.decode);
  } else if (view.image.pixels.empty()) {
    sample.image.height = sample.image.width = sample.image.channels = 0;
    sample.image.pixels.clear();
  } else if (has_window) {
    const internal::PixelView pixels = view_of(view.image);
    request->plan(pixels.height, pixels.width).apply(pixels, sample.image);
  } else {
    copy_pixels(view.image, sample.image);
  }
}

StoreDataset::StoreDataset(const std::string& directory, StoreOptions options)
    : files_(std::make_shared<const Files>(directory, options)) {}

int64_t StoreDataset::size() const { return files_->samples; }

Sample StoreDataset::get(int64_t index) const {
  Sample sample;
  files_->read(index, nullptr, sample);
  return sample;
}

Sample StoreDataset::get_for(int64_t index, ImageRequest& request) const {
  Sample sample;
  files_->read(index, &request, sample);
  return sample;
}

void StoreDataset::read(int64_t index, ImageRequest& request, Sample& sample) const {
  files_->read(index, &request, sample);
}

bool StoreDataset::will_need(int64_t index) const {
  if (index < 0 || index >= size() || files_->seen.has(index)) {
    return false;
  }
  try {
    const Files::Place place = files_->find(index);
    place.shard->file.will_need(place.record.offset, place.record.bytes);
  } catch (const Error&) {
    return false;  // reading the sample says what is wrong
  }
  return true;
}

std::optional<std::vector<uint8_t>> StoreDataset::encoded(int64_t index) const {
  const auto file = unsigned_bytes(files_->parsed(index, files_->verified(index)).encoded);
  return file.empty() ? std::nullopt
                      : std::optional(std::vector<uint8_t>(file.begin(), file.end()));
}

// Ignores the given bytes, since the mapping has the same ones.
void StoreDataset::read_encoded(int64_t index, std::span<const uint8_t> /*bytes*/,
                                ImageRequest& request, Sample& sample) const {
  files_->read(index, &request, sample);
}

int64_t StoreDataset::class_count() const { return files_->manifest.classes; }

std::vector<std::string> StoreDataset::class_names() const {
  const StoreManifest& manifest = files_->manifest;
  return manifest.class_names.empty() ? numbered_class_names(manifest.classes)
                                      : manifest.class_names;
}

int StoreDataset::channels() const {
  const int given = files_->options.decode.channels;
  return files_->manifest.encoded && given != 0 ? given : files_->manifest.channels;
}

std::string StoreDataset::describe(int64_t index) const {
  files_->shard_of(index).file.check_whole();
  const Files::Place place = files_->find(index);
  const SampleView view = files_->parsed(index, place);
  const std::string name = files_->name(index);
  return view.origin.empty() ? name : text(name, " (", printable(view.origin), ")");
}

uint64_t StoreDataset::id(int64_t index) const { return files_->find(index).record.id; }

std::optional<int64_t> StoreDataset::label(int64_t index) const {
  const int64_t label = files_->find(index).record.label;
  return label == kNoLabel ? std::nullopt : std::optional(label);
}

std::optional<int64_t> StoreDataset::length(int64_t index, std::string_view field) const {
  Sample sample;
  read_rest(files_->parsed(index, files_->verified(index)).rest, sample);
  const Tensor* found = find_field(sample.fields, field);
  return found != nullptr && found->dim() > 0 ? std::optional(found->size(0)) : std::nullopt;
}

bool StoreDataset::in_memory() const { return !files_->manifest.encoded; }

std::vector<std::string> StoreDataset::verify() const {
  std::vector<std::pair<int64_t, std::string>> found;
  std::mutex mutex;
  constexpr int64_t kGrain = 64;
  kernels::parallel_for(size(), kGrain, [&](int64_t i, int64_t end) {
    Sample sample;
    for (; i < end; ++i) {
      try {
        files_->shard_of(i).file.check_whole();
        const Files::Place place = files_->find(i);
        check(crc32c(place.bytes) == place.record.crc, files_->name(i),
              ": the sample was changed: it has another checksum than the index says");
        files_->read(i, nullptr, sample);
      } catch (const OutOfMemory&) {
        throw;
      } catch (const Error& error) {
        const std::lock_guard lock(mutex);
        found.emplace_back(i, printable(error.what()));
      }
    }
  });
  std::sort(found.begin(), found.end());
  std::vector<std::string> lines;
  for (auto& [index, line] : found) {
    lines.push_back(std::move(line));
  }
  return lines;
}

bool is_store(const std::string& directory) {
  return file_kind(directory + "/" + kStoreManifest) == "a regular file";
}

}  // namespace binade::data
