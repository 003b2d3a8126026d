// CIFAR's binary files.
#include <binade/core/io/file_system.h>
#include <binade/core/io/hash64.h>
#include <binade/data/decode.h>
#include <binade/data/sample_internal.h>
#include <binade/data/sets/cifar.h>
#include <binade/data/store/manifest_text_internal.h>
#include <binade/data/window/geometry_internal.h>
#include <binade/data/window/image_request.h>

#include <algorithm>

namespace binade::data {
namespace {

constexpr int kSide = 32, kChannels = 3;
constexpr size_t kPlane = size_t{kSide} * kSide, kPicture = kPlane * kChannels;
constexpr int64_t kMaxFile = int64_t(4) << 30;

bool is_file(const std::string& path) { return file_kind(path) == "a regular file"; }

// The files of CIFAR-10's layout; none if the first is not there.
std::vector<std::string> batches(const std::string& directory, Part part) {
  std::vector<std::string> files;
  if (part == Part::test) {
    if (is_file(directory + "/test_batch.bin")) {
      files.push_back(directory + "/test_batch.bin");
    }
    return files;
  }
  for (int64_t i = 1; is_file(text(directory, "/data_batch_", i, ".bin")); ++i) {
    files.push_back(text(directory, "/data_batch_", i, ".bin"));
  }
  return files;
}

std::string hundred(const std::string& directory, Part part) {
  return directory + (part == Part::train ? "/train.bin" : "/test.bin");
}

// The lines of a file of names, without empty lines at the end; nothing if there is no file.
std::vector<std::string> read_names(const std::string& path) {
  std::vector<std::string> names;
  if (!is_file(path)) {
    return names;
  }
  constexpr int64_t kMost = 1 << 20;
  const std::vector<uint8_t> bytes = read_file(path, kMost);
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!rest.empty()) {
    std::string_view line = take_until(rest, '\n');
    line = line.substr(0, line.find_last_not_of(" \r\t") + 1);
    names.emplace_back(line);
  }
  while (!names.empty() && names.back().empty()) {
    names.pop_back();
  }
  return names;
}

}  // namespace

bool has_cifar_files(const std::string& directory) {
  const auto is_hundred = [&](Part part) {
    const std::string path = hundred(directory, part);
    return is_file(path) && is_file(directory + "/fine_label_names.txt");
  };
  return (!batches(directory, Part::train).empty() && !batches(directory, Part::test).empty()) ||
         (is_hundred(Part::train) && is_hundred(Part::test));
}

CifarDataset::CifarDataset(const std::string& directory, Part part, CifarLabels labels,
                           Checksums checksums) {
  const Part other = part == Part::train ? Part::test : Part::train;
  std::vector<std::string> files = batches(directory, part), others = batches(directory, other);
  if (files.empty() && others.empty()) {
    check(is_file(hundred(directory, part)), directory,
          ": no files of CIFAR, expected data_batch_1.bin, ... and test_batch.bin, or train.bin "
          "and test.bin");
    files = {hundred(directory, part)};
    if (is_file(hundred(directory, other))) {
      others = {hundred(directory, other)};
    }
    label_bytes_ = 2;
    label_at_ = labels == CifarLabels::fine ? 1 : 0;
    names_ = read_names(directory +
                        (label_at_ == 1 ? "/fine_label_names.txt" : "/coarse_label_names.txt"));
  } else {
    check(!files.empty(), directory, ": has no ",
          part == Part::train ? "data_batch_1.bin" : "test_batch.bin");
    names_ = read_names(directory + "/batches.meta.txt");
  }
  classes_ = std::ssize(names_);
  for (const std::string& file : files) {
    add_file(file, true, checksums);
  }
  for (const std::string& file : names_.empty() ? others : std::vector<std::string>()) {
    add_file(file, false, checksums);
  }
}

// Reads a file; without `keep` it only counts the classes.
void CifarDataset::add_file(const std::string& path, bool keep, Checksums checksums) {
  const std::vector<uint8_t> bytes = read_file(path, kMaxFile);
  if (const auto expected = expected_checksum(path, checksums)) {
    verify_checksum(path, *expected, bytes);
  }
  const size_t record = kPicture + static_cast<size_t>(label_bytes_);
  check(!bytes.empty() && bytes.size() % record == 0, path, ": has ", bytes.size(),
        " bytes, expected records of ", record, " bytes: ", label_bytes_, " for labels and ",
        kPicture, " for the picture");
  const size_t count = bytes.size() / record, before = labels_.size();
  if (keep) {
    labels_.resize(before + count);
    pixels_.resize((before + count) * kPicture);
  }
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* from = bytes.data() + i * record;
    const int label = from[label_at_];
    check(names_.empty() || label < std::ssize(names_), path, ": label ", label, " of record ", i,
          ", expected less than ", names_.size(), " classes");
    classes_ = std::max<int64_t>(classes_, label + 1);
    if (!keep) {
      continue;
    }
    labels_[before + i] = static_cast<uint8_t>(label);
    from += label_bytes_;
    uint8_t* to = pixels_.data() + (before + i) * kPicture;
    for (size_t p = 0; p < kPlane; ++p) {
      for (size_t c = 0; c < kChannels; ++c) {
        to[p * kChannels + c] = from[c * kPlane + p];
      }
    }
  }
  if (keep) {
    files_.push_back(path);
    ends_.push_back(size());
  }
}

std::span<const uint8_t> CifarDataset::pixels_of(int64_t index) const {
  check(index >= 0 && index < size(), "cifar: got index ", index, ", expected one of ", size());
  return std::span(pixels_).subspan(static_cast<size_t>(index) * kPicture, kPicture);
}

Sample CifarDataset::get(int64_t index) const {
  const std::span<const uint8_t> pixels = pixels_of(index);
  return {.image = {kSide, kSide, kChannels, {pixels.begin(), pixels.end()}},
          .label = labels_[static_cast<size_t>(index)]};
}

void CifarDataset::read(int64_t index, ImageRequest& request, Sample& sample) const {
  const internal::PixelView view{.pixels = pixels_of(index).data(),
                                 .stride = ptrdiff_t{kSide} * kChannels,
                                 .channels = kChannels,
                                 .height = kSide,
                                 .width = kSide};
  if (request.has_window()) {
    request.plan(kSide, kSide).apply(view, sample.image);
  } else {
    sample.image.height = sample.image.width = kSide;
    sample.image.channels = kChannels;
    sample.image.pixels.assign(view.pixels, view.pixels + kPicture);
  }
  sample.label = labels_[static_cast<size_t>(index)];
}

std::vector<std::string> CifarDataset::class_names() const {
  return names_.empty() ? numbered_class_names(classes_) : names_;
}

std::string CifarDataset::describe(int64_t index) const {
  const auto file =
      static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
  check(index >= 0 && file < files_.size(), "cifar: got index ", index, ", expected one of ",
        size());
  return text(files_[file], ":", index - (file == 0 ? 0 : ends_[file - 1]));
}

uint64_t CifarDataset::id(int64_t index) const {
  Hash64 hash;
  hash.add(std::as_bytes(pixels_of(index)));
  return hash.value();
}

std::optional<int64_t> CifarDataset::label(int64_t index) const {
  return labels_.at(static_cast<size_t>(index));
}

}  // namespace binade::data
