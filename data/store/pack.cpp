// Stores whole datasets.
#include <binade/core/io/file_system.h>
#include <binade/data/encode.h>
#include <binade/data/store/pack.h>
#include <binade/data/store/store_dataset.h>
#include <binade/data/store/store_format_internal.h>
#include <binade/data/store/store_writer.h>
#include <binade/data/temporary_folder_internal.h>
#include <binade/data/window/image_request.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/printable.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

namespace binade::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSeed = 0x5041'434B;  // of a transform that draws

struct Packed {
  std::string bytes;
  std::string error;  // then `bytes` is empty
  int64_t label = kNoLabel;
  int channels = kUnknownChannels;
  bool keeps_file = false;
};

bool is_jpeg(std::span<const uint8_t> file) {
  return file.size() > 3 && file[0] == 0xff && file[1] == 0xd8 && file[2] == 0xff;
}

class Packer {
 public:
  Packer(const Dataset& dataset, const PackOptions& options, std::string directory)
      : dataset_(dataset), options_(options), directory_(std::move(directory)) {
    const std::vector<std::string> names = merged_names();
    StoreWriterOptions writing{
        .class_names = names, .shard_bytes = options.shard_bytes, .append = options.append};
    if (names.empty() && !options.append) {
      writing.classes = dataset.class_count();
    }
    writer_.emplace(directory_, writing);
  }

  // Adds all samples and prepares the store. `done` and `all` are for the progress.
  PackResult add_all(int64_t done, int64_t all) {
    const int64_t chunk = std::max<int64_t>(32, int64_t{16} * kernels::threads());
    std::vector<Packed> packed(static_cast<size_t>(chunk));
    PackResult result;
    for (int64_t begin = 0; begin < dataset_.size(); begin += chunk) {
      const int64_t count = std::min(chunk, dataset_.size() - begin);
      kernels::parallel_for(count, 1, [&](int64_t i, int64_t end) {
        for (; i < end; ++i) {
          packed[static_cast<size_t>(i)] = packed_sample(begin + i);
        }
      });
      for (int64_t i = 0; i < count; ++i) {
        store(packed[static_cast<size_t>(i)], result);
      }
      if (options_.progress) {
        options_.progress({done + begin + count, all, writer_->bytes()});
      }
    }
    check(result.samples > 0, directory_, ": got no sample that can be read for the store");
    writer_->prepare();
    return result;
  }
  StoreWriter& writer() { return *writer_; }

 private:
  std::vector<std::string> merged_names();
  Packed packed_sample(int64_t index) const;
  void pack_into(int64_t index, Packed& packed) const;
  void store(Packed& packed, PackResult& result);

  const Dataset& dataset_;
  const PackOptions& options_;
  std::string directory_;
  std::vector<int64_t> labels_;  // of the store, by label of the dataset; empty: the same
  std::optional<StoreWriter> writer_;
};

// The class names of the store, then the new ones.
std::vector<std::string> Packer::merged_names() {
  std::vector<std::string> added = dataset_.class_names();
  if (!options_.append) {
    return added;
  }
  check(is_store(directory_), directory_, ": there is no store to append to");
  std::vector<std::string> names = StoreDataset(directory_).class_names();
  check(names.empty() == added.empty(), directory_, ": the store has ", names.size(),
        " class names and the samples have ", added.size(),
        ", expected names of both or of none: labels would not mean the same");
  const std::set<std::string> different(added.begin(), added.end());
  check(different.size() == added.size(), directory_,
        ": got samples with several classes of one name, which cannot be told apart in the store");
  for (const std::string& name : added) {
    auto place = std::find(names.begin(), names.end(), name);
    labels_.push_back(place - names.begin());
    if (place == names.end()) {
      names.push_back(name);
    }
  }
  return names;
}

Packed Packer::packed_sample(int64_t index) const {
  Packed packed;
  try {
    pack_into(index, packed);
  } catch (const OutOfMemory&) {
    throw;
  } catch (const Error& error) {
    const auto* file = dynamic_cast<const FileError*>(&error);
    const std::string origin = printable(dataset_.describe(index)), cause = error.what();
    const bool named = cause.find(origin) != std::string::npos;
    const std::string line =
        text("sample ", index, named ? "" : text(" (", origin, ")"), ": ", printable(cause));
    check(options_.skip_bad && !(file != nullptr && file->is_out_of_resources()), "pack: ", line);
    packed = {};
    packed.error = line;
  }
  return packed;
}

void Packer::pack_into(int64_t index, Packed& packed) const {
  static const Transform kNone;
  philox::Stream random = sample_stream(kSeed, 0, index);
  ImageRequest request(kNone, random);
  Sample sample;
  std::optional<std::vector<uint8_t>> file;
  if (options_.images != PackImages::raw && !options_.transform) {
    file = dataset_.encoded(index);
  }
  if (file) {
    dataset_.read_encoded(index, *file, request, sample);
  } else {
    dataset_.read(index, request, sample);
  }
  const bool has_image = !sample.image.pixels.empty();
  if (options_.transform) {
    check(has_image, "got a transform for a sample without an image");
    options_.transform(sample, random);
  }
  std::vector<uint8_t> kept;
  if (file && has_image && (options_.images == PackImages::keep || is_jpeg(*file))) {
    kept = std::move(*file);
  } else if (has_image && options_.images == PackImages::jpeg) {
    kept = encode_jpeg(sample.image, options_.quality);
  }
  if (!labels_.empty() && sample.label != kNoLabel) {
    check(sample.label >= 0 && sample.label < std::ssize(labels_), "has label ", sample.label,
          ", which has no class name");
    sample.label = labels_[static_cast<size_t>(sample.label)];
  }
  packed.label = sample.label;
  packed.channels = has_image ? sample.image.channels : 0;
  packed.keeps_file = !kept.empty();
  packed.bytes = encode_sample(sample, dataset_.describe(index), kept);
}

void Packer::store(Packed& packed, PackResult& result) {
  if (!packed.error.empty()) {
    result.bad.push_back(std::move(packed.error));
    return;
  }
  const int64_t before = writer_->bytes();
  writer_->add_encoded_sample(packed.bytes, packed.label, packed.channels, packed.keeps_file);
  ++result.samples;
  result.bytes += writer_->bytes() - before;
}

void check_options(const PackOptions& options) {
  check(options.quality >= 1 && options.quality <= 100, "pack: got quality ", options.quality,
        ", expected 1 to 100");
  check(options.images != PackImages::jpeg || has_libjpeg(),
        "pack: this build has no libjpeg-turbo and cannot write JPEG; store raw pixels");
}

// The folder without a "/" at the end: "dir/" becomes "dir".
fs::path folder_of(const std::string& directory) {
  fs::path target = directory;
  if (!target.has_filename()) {
    target = target.parent_path();
  }
  check(target.has_filename(), "pack: got no folder name");
  return target;
}

// Lets `write` fill a temporary folder, then renames it to the target, which thus appears complete.
template <class Write>
PackResult write_folder(const fs::path& target, const Write& write) {
  std::error_code ignored;
  check(!fs::exists(target, ignored) || fs::is_empty(target, ignored), target.native(),
        ": the folder is not empty; give a new one, or append to the store in it");
  internal::TemporaryFolder temporary(target, kPackMarker, "binade store 1\n");
  PackResult result = write(temporary.path());
  sync_directory(temporary.path().native());
  check(temporary.rename_to_target(), target.native(), ": the name was taken meanwhile");
  sync_directory(fs::absolute(target).parent_path().native());
  return result;
}

}  // namespace

PackResult pack(DatasetPtr dataset, const std::string& directory, const PackOptions& options) {
  check(dataset.get() != nullptr, "pack: got no dataset");
  check_options(options);
  const auto run = [&](const fs::path& folder) {
    Packer packer(*dataset.get(), options, folder.native());
    PackResult result = packer.add_all(0, dataset->size());
    packer.writer().finish();
    return result;
  };
  const fs::path target = folder_of(directory);
  return options.append ? run(target) : write_folder(target, run);
}

PackResult pack(const TrainTest& parts, const std::string& directory, const PackOptions& options) {
  check(parts.train != nullptr && parts.test != nullptr, "pack: got no dataset");
  check_options(options);
  const auto run = [&](const fs::path& folder) {
    const int64_t all = parts.train->size() + parts.test->size();
    Packer train_part(*parts.train, options, (folder / "train").native());
    Packer test_part(*parts.test, options, (folder / "test").native());
    PackResult sum = train_part.add_all(0, all);
    const PackResult test = test_part.add_all(parts.train->size(), all);
    StoreWriter::finish_together(folder.native(), {&train_part.writer(), &test_part.writer()});
    sum.samples += test.samples;
    sum.bytes += test.bytes;
    sum.bad.insert(sum.bad.end(), test.bad.begin(), test.bad.end());
    return sum;
  };
  const fs::path target = folder_of(directory);
  return options.append ? run(target) : write_folder(target, run);
}

}  // namespace binade::data
