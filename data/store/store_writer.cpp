// Writes a packed store: shards under temporary names, which are synced and renamed when they are
// full; at the end the manifest, which is replaced in one step.
#include <binade/core/io/crc32c.h>
#include <binade/core/io/file_system.h>
#include <binade/core/io/hash64.h>
#include <binade/data/store/joint_append_internal.h>
#include <binade/data/store/store_writer.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>

namespace binade::data {
namespace {

namespace fs = std::filesystem;

// The lock of a folder that is being written. It ends with the process.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder)
      : file_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    check(file_ >= 0, folder, ": cannot open the folder of the store");
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      ::close(file_);
      fail(folder, ": another process writes to this store; wait until it has ended");
    }
  }
  ~FolderLock() { ::close(file_); }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_;
};

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

class StoreWriter::State {
 public:
  State(std::string directory, StoreWriterOptions options);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void add(std::string_view bytes, int64_t label);
  void note_image(int channels, bool keeps_file);
  void prepare();
  void keep() { new_files_.clear(); }  // the new files belong to the store
  const std::string& prepared() const { return prepared_; }
  const std::string& directory() const { return directory_; }
  void finish();
  int64_t samples() const { return manifest_.samples() + static_cast<int64_t>(records_.size()); }
  int64_t bytes() const { return written_ + (shard_ ? static_cast<int64_t>(shard_->size()) : 0); }

 private:
  void open_existing();
  void add_classes();
  void clear_leftovers();
  void begin_shard();
  void end_shard();
  std::string path_of(const std::string& name) const { return directory_ + "/" + name; }

  std::string directory_;
  StoreWriterOptions options_;
  std::optional<FolderLock> lock_;
  StoreManifest manifest_;
  bool mixes_channels_ = false;
  bool is_prepared_ = false;
  std::string prepared_;  // the path of the new manifest
  int64_t largest_label_ = -1, written_ = 0;
  std::optional<OutputFile> shard_;
  std::vector<Record> records_;         // of the shard
  std::vector<std::string> new_files_;  // to remove without finish()
};

StoreWriter::State::State(std::string directory, StoreWriterOptions options)
    : directory_(std::move(directory)), options_(std::move(options)) {
  constexpr int64_t kLeast = 4096, kMost = int64_t(1) << 40;
  check(options_.shard_bytes >= kLeast && options_.shard_bytes <= kMost, "store: got shard_bytes ",
        options_.shard_bytes, ", expected ", kLeast, " to ", kMost);
  check(options_.classes >= 0 && options_.classes <= kMaxStoreClasses &&
            (options_.class_names.empty() || options_.classes == 0 ||
             std::ssize(options_.class_names) == options_.classes),
        "store: got ", options_.classes, " classes and ", options_.class_names.size(),
        " names, expected one per class and at most ", kMaxStoreClasses);
  if (!options_.append) {
    make_directories(directory_);
  }
  check(file_kind(directory_) == "a directory", directory_, ": there is no store to append to");
  // pack() already holds the lock of a new folder.
  if (options_.append || file_kind(path_of(kPackMarker)) != "a regular file") {
    lock_.emplace(directory_);
  }
  if (options_.append) {
    open_existing();
  } else {
    for (const DirectoryEntry& entry : list_directory(directory_)) {
      check(entry.name == kPackMarker, directory_,
            ": the folder is not empty; give a new one, or append to the store in it");
    }
  }
  add_classes();
}

StoreWriter::State::~State() {
  shard_.reset();
  for (const std::string& file : new_files_) {
    file_system().remove_file(file);
  }
}

void StoreWriter::State::open_existing() {
  const std::string path = path_of(kStoreManifest);
  check(file_kind(path) == "a regular file", directory_,
        ": there is no store to append to; make one without append");
  if (const std::string waiting = manifest_path(directory_); waiting != path) {
    rename_path(waiting, path);  // the writer was killed before it did so
    sync_directory(directory_);
  }
  manifest_ = read_store_manifest(directory_);
  clear_leftovers();
}

// Removes the files of a process that was killed while it appended.
void StoreWriter::State::clear_leftovers() {
  for (const DirectoryEntry& entry : list_directory(directory_)) {
    bool known = entry.name == kStoreManifest || !entry.is_file;
    for (size_t i = 0; i < manifest_.shards.size() && !known; ++i) {
      known = entry.name == shard_name(i);
    }
    const bool is_ours = entry.name.ends_with(".tmp") || entry.name.ends_with(".bin");
    if (!known && is_ours) {
      remove_path(entry, directory_);
    }
  }
}

void StoreWriter::State::add_classes() {
  const auto& names = options_.class_names;
  const auto& old = manifest_.class_names;
  check(names.empty() ||
            (names.size() >= old.size() && std::equal(old.begin(), old.end(), names.begin())),
        directory_, ": the class names do not begin with the ", old.size(),
        " of the store; labels would change their meaning");
  check(names.empty() || std::ssize(names) >= manifest_.classes, directory_, ": got ", names.size(),
        " class names for the ", manifest_.classes, " classes of the store");
  if (!names.empty()) {
    manifest_.class_names = names;
    manifest_.classes = std::ssize(names);
  } else if (options_.classes > 0) {
    check(options_.classes >= manifest_.classes &&
              (old.empty() || std::ssize(old) == options_.classes),
          directory_, ": the store has ", manifest_.classes,
          " classes, expected as many or more, got ", options_.classes);
    manifest_.classes = options_.classes;
  }
}

void StoreWriter::State::begin_shard() {
  const std::string name = shard_name(manifest_.shards.size());
  const std::string path = path_of(text(name, ".", process_token(), ".tmp"));
  shard_.emplace(path);
  new_files_.push_back(path);
  shard_->write(std::string_view(kShardMagic.data(), kShardMagic.size()));
}

void StoreWriter::State::end_shard() {
  ShardEntry entry{.samples = std::ssize(records_)};
  const auto index = std::as_bytes(std::span(records_));
  entry.index_crc = crc32c(index);
  shard_->write(index);
  entry.bytes = shard_->size();
  shard_->finish();
  const std::string path = path_of(shard_name(manifest_.shards.size()));
  rename_path(shard_->path(), path);
  new_files_.back() = path;
  written_ += static_cast<int64_t>(entry.bytes);
  manifest_.shards.push_back(entry);
  shard_.reset();
  records_.clear();
}

void StoreWriter::State::add(std::string_view bytes, int64_t label) {
  const bool grows = manifest_.class_names.empty() && options_.classes == 0;
  const int64_t classes = grows ? kMaxStoreClasses : manifest_.classes;
  check(label == kNoLabel || (label >= 0 && label < classes), "store: got label ", label,
        ", expected one of ", classes, " classes");
  check(!is_prepared_, "store: add() was called after prepare()");
  check(bytes.size() <= kMaxSampleBytes, "store: got a sample of 4 GiB or more, expected less");
  if (!shard_) {
    begin_shard();
  }
  Hash64 hash;
  hash.add(bytes);
  hash.add(static_cast<uint64_t>(label));
  records_.push_back({.offset = shard_->size(),
                      .id = hash.value(),
                      .label = label,
                      .bytes = static_cast<uint32_t>(bytes.size()),
                      .crc = crc32c(bytes_of(bytes))});
  shard_->write(bytes);
  constexpr std::string_view kZeros("\0\0\0\0\0\0\0", kSampleAlignment - 1);
  shard_->write(
      kZeros.substr(0, (kSampleAlignment - bytes.size() % kSampleAlignment) % kSampleAlignment));
  largest_label_ = std::max(largest_label_, label == kNoLabel ? int64_t{-1} : label);
  constexpr size_t kMostRecords = size_t(1) << 20;  // 32 MiB of records in memory
  if (shard_->size() >= static_cast<uint64_t>(options_.shard_bytes) ||
      records_.size() >= kMostRecords) {
    end_shard();
  }
}

// `channels` 0: the sample has no image.
void StoreWriter::State::note_image(int channels, bool keeps_file) {
  const bool first = samples() == 0;
  mixes_channels_ |= !first && channels != manifest_.channels;
  manifest_.channels = mixes_channels_ ? kUnknownChannels : channels;
  manifest_.encoded |= keeps_file;
}

void StoreWriter::State::prepare() {
  if (is_prepared_) {
    return;
  }
  if (shard_) {
    end_shard();
  }
  check(manifest_.samples() > 0, directory_, ": got no samples for the store");
  if (manifest_.class_names.empty()) {
    manifest_.classes = std::max(manifest_.classes, largest_label_ + 1);
  }
  sync_directory(directory_);
  const std::string path = path_of(text(kStoreManifest, ".", process_token(), ".tmp"));
  OutputFile file(path);
  new_files_.push_back(path);
  file.write(to_text(manifest_));
  file.finish();
  prepared_ = path;
  is_prepared_ = true;
}

void StoreWriter::State::finish() {
  prepare();
  rename_path(prepared_, path_of(kStoreManifest));
  keep();  // even if the name is not yet on disk
  sync_directory(directory_);
}

StoreWriter::StoreWriter(const std::string& directory, StoreWriterOptions options)
    : state_(std::make_unique<State>(directory, std::move(options))) {}

StoreWriter::~StoreWriter() = default;

void StoreWriter::add(const Sample& sample, std::string_view origin,
                      std::span<const uint8_t> encoded) {
  const int channels = !encoded.empty() ? kUnknownChannels : sample.image.channels;
  add_encoded_sample(encode_sample(sample, origin, encoded), sample.label, channels,
                     !encoded.empty());
}

void StoreWriter::add_encoded_sample(std::string_view bytes, int64_t label, int channels,
                                     bool keeps_file) {
  check(state_ != nullptr, "store: add() was called after finish()");
  state_->note_image(channels, keeps_file);
  state_->add(bytes, label);
}

void StoreWriter::prepare() {
  check(state_ != nullptr, "store: prepare() was called after finish()");
  state_->prepare();
}

void StoreWriter::finish() {
  check(state_ != nullptr, "store: finish() was called twice");
  state_->finish();
  state_.reset();
}

void StoreWriter::finish_together(const std::string& folder,
                                  const std::vector<StoreWriter*>& writers) {
  std::vector<std::string> manifests;
  for (StoreWriter* writer : writers) {
    writer->prepare();
    const State& state = *writer->state_;
    sync_directory(state.directory());
    const fs::path manifest = fs::path(state.prepared()).lexically_normal();
    manifests.push_back((manifest.parent_path().filename() / manifest.filename()).native());
  }
  try {
    write_joint_append(folder, manifests);
  } catch (...) {
    file_system().remove_file(folder + "/" + kJointAppend);
    throw;
  }
  for (StoreWriter* writer : writers) {
    writer->state_->keep();
  }
  for (StoreWriter* writer : writers) {
    writer->finish();
  }
  remove_joint_append(folder);
}

int64_t StoreWriter::samples() const { return state_ ? state_->samples() : 0; }

int64_t StoreWriter::bytes() const { return state_ ? state_->bytes() : 0; }

}  // namespace binade::data
