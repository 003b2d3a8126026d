// Samples in tar files.
#include <binade/core/io/file_system.h>
#include <binade/core/io/hash64.h>
#include <binade/core/observe/warning.h>
#include <binade/data/folder_listing_internal.h>
#include <binade/data/sample_internal.h>
#include <binade/data/sets/tar_dataset.h>
#include <binade/data/sets/tar_reader_internal.h>
#include <binade/data/store/manifest_text_internal.h>
#include <binade/data/store/mapped_file_internal.h>
#include <binade/data/window/image_request.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace binade::data {
namespace {

constexpr int64_t kMaxClasses = int64_t(1) << 24;

bool is_tar_name(const std::string& name) { return name.ends_with(".tar") && name[0] != '.'; }

std::vector<std::string> tar_files(const std::string& path) {
  if (file_kind(path) != "a directory") {
    return {path};
  }
  std::vector<std::string> files;
  for (const DirectoryEntry& entry : list_directory(path)) {
    if (!entry.is_directory && is_tar_name(entry.name)) {
      files.push_back(path + "/" + entry.name);
    }
  }
  check(!files.empty(), path, ": no *.tar in the folder");
  return files;
}

struct MemberName {
  std::string_view key, extension;
};

MemberName split_name(const std::string& name) {
  const size_t slash = name.rfind('/');
  const size_t begin = slash == std::string::npos ? 0 : slash + 1;
  const size_t dot = std::min(name.find('.', begin), name.size());
  return {std::string_view(name).substr(0, dot),
          std::string_view(name).substr(std::min(dot + 1, name.size()))};
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  return out;
}

int64_t parse_class(const TarMember& member, const std::string& path) {
  std::string_view digits = text_of(member.bytes);
  constexpr std::string_view kSpaces = " \r\n\t";
  digits = digits.substr(0, digits.find_last_not_of(kSpaces) + 1);
  int64_t label = -1;
  check(parse_number(digits, 10, label) && label >= 0 && label < kMaxClasses, path, ": ",
        member.name, ": got '", digits.substr(0, 40),
        "', expected a class, a whole number from 0 to ", kMaxClasses - 1);
  return label;
}

uint64_t file_bytes(const std::string& path) { return InputFile(path).size(); }

}  // namespace

struct TarDataset::Files {
  struct Place {
    uint64_t begin = 0;  // of the sample's first header
    uint32_t members = 0;
    uint32_t file = 0;
    int64_t label = kNoLabel;
  };
  // The parts of a sample. The spans point into the mapped file.
  struct Parts {
    std::string name;  // of the image, else of the first member
    std::span<const std::byte> image;
    std::vector<std::pair<std::string, std::span<const std::byte>>> fields;
  };

  Files(const std::string& path, TarOptions given);
  void scan(uint32_t file);
  const Place& place(int64_t index) const;
  const MappedFile& file_of(const Place& place) const { return maps[place.file]; }
  Parts parts(int64_t index) const;
  std::string name(int64_t index, const Parts& parts) const {
    return text(file_of(place(index)).path(), ": ", parts.name);
  }
  void add_fields(const Parts& parts, Sample& sample) const;

  TarOptions options;
  std::vector<MappedFile> maps;
  std::vector<Place> places;
  int64_t classes = 0, left_out = 0;
  bool has_images = false;
};

TarDataset::Files::Files(const std::string& path, TarOptions given) : options(std::move(given)) {
  check(!options.label.empty(), "tar: got an empty extension for labels");
  const std::vector<std::string> files = tar_files(path);
  maps.reserve(files.size());
  for (const std::string& file : files) {
    maps.emplace_back(file, file_bytes(file));
    scan(static_cast<uint32_t>(maps.size() - 1));
  }
  check(!places.empty(), path, ": got no samples, expected members KEY.jpg, KEY.cls, ...");
  if (left_out > 0) {
    warn(
        text(path, ": left out ", left_out, " members of the tar files that are no regular files"));
  }
  has_images = !parts(0).image.empty();
}

// Adds the samples of a file.
void TarDataset::Files::scan(uint32_t file) {
  const MappedFile& map = maps[file];
  map.check_whole();
  TarReader reader(map.bytes(), map.path());
  TarMember member;
  std::string key;
  std::set<std::string> extensions;  // of the sample
  while (reader.next(member)) {
    const MemberName name = split_name(member.name);
    if (name.extension.empty()) {
      continue;  // a README: no part of a sample
    }
    const std::string extension = lower(name.extension);
    if (extensions.empty() || name.key != key) {
      key = name.key;
      extensions.clear();
      places.push_back({.begin = member.begin, .file = file});
    }
    check(extensions.insert(extension).second, map.path(), ": ", member.name,
          ": the sample has this member twice");
    Place& place = places.back();
    ++place.members;
    if (extension == options.label) {
      place.label = parse_class(member, map.path());
      classes = std::max(classes, place.label + 1);
    }
  }
  left_out += reader.left_out();
}

const TarDataset::Files::Place& TarDataset::Files::place(int64_t index) const {
  check(index >= 0 && index < std::ssize(places), "tar: got index ", index, ", expected one of ",
        places.size());
  return places[static_cast<size_t>(index)];
}

TarDataset::Files::Parts TarDataset::Files::parts(int64_t index) const {
  const Place& at = place(index);
  const MappedFile& map = file_of(at);
  map.check_whole();
  Parts out;
  TarReader reader(map.bytes(), map.path(), at.begin);
  TarMember member;
  for (uint32_t i = 0; i < at.members;) {
    check(reader.next(member), map.path(), ": the file changed while it was in use");
    const std::string extension = lower(split_name(member.name).extension);
    if (extension.empty()) {
      continue;
    }
    out.name = i == 0 ? member.name : out.name;
    if (out.image.empty() && has_image_extension("x." + extension)) {
      out.image = member.bytes;
      out.name = member.name;
    }
    if (std::find(options.fields.begin(), options.fields.end(), extension) !=
        options.fields.end()) {
      out.fields.emplace_back(extension, member.bytes);
    }
    ++i;
  }
  return out;
}

void TarDataset::Files::add_fields(const Parts& parts, Sample& sample) const {
  for (const std::string& wanted : options.fields) {
    const auto found = std::find_if(parts.fields.begin(), parts.fields.end(),
                                    [&](const auto& field) { return field.first == wanted; });
    check(found != parts.fields.end(), parts.name, ": the sample has no member '", wanted,
          "' (TarOptions::fields)");
    Tensor field = empty({std::ssize(found->second)}, DType::u8);
    if (!found->second.empty()) {
      std::memcpy(field.view().data, found->second.data(), found->second.size());
    }
    sample.fields.emplace_back(wanted, std::move(field));
  }
}

TarDataset::TarDataset(const std::string& path, TarOptions options)
    : files_(std::make_shared<const Files>(path, std::move(options))) {}

int64_t TarDataset::size() const { return std::ssize(files_->places); }

Sample TarDataset::get(int64_t index) const {
  const Files::Parts parts = files_->parts(index);
  const std::string name = files_->name(index, parts);
  Sample sample{.label = files_->place(index).label};
  files_->add_fields(parts, sample);
  if (files_->has_images) {
    check(!parts.image.empty(), name, ": the sample has no image");
    sample.image =
        decode_image({reinterpret_cast<const uint8_t*>(parts.image.data()), parts.image.size()},
                     name, files_->options.decode);
  }
  return sample;
}

void TarDataset::read(int64_t index, ImageRequest& request, Sample& sample) const {
  const Files::Parts parts = files_->parts(index);
  read_encoded(index, {reinterpret_cast<const uint8_t*>(parts.image.data()), parts.image.size()},
               request, sample);
}

std::optional<std::vector<uint8_t>> TarDataset::encoded(int64_t index) const {
  const Files::Parts parts = files_->parts(index);
  if (parts.image.empty()) {
    return std::nullopt;
  }
  const auto* begin = reinterpret_cast<const uint8_t*>(parts.image.data());
  return std::vector<uint8_t>(begin, begin + parts.image.size());
}

void TarDataset::read_encoded(int64_t index, std::span<const uint8_t> bytes, ImageRequest& request,
                              Sample& sample) const {
  const Files::Parts parts = files_->parts(index);
  sample.label = files_->place(index).label;
  files_->add_fields(parts, sample);
  if (files_->has_images) {
    const std::string name = files_->name(index, parts);
    check(!bytes.empty(), name, ": the sample has no image");
    sample.image = request.decode(bytes, name, files_->options.decode);
  }
}

bool TarDataset::will_need(int64_t index) const {
  const auto next = static_cast<size_t>(index) + 1;
  const Files::Place& place = files_->place(index);
  const MappedFile& file = files_->file_of(place);
  const bool is_last = next == files_->places.size() || files_->places[next].file != place.file;
  file.will_need(place.begin,
                 (is_last ? file.bytes().size() : files_->places[next].begin) - place.begin);
  return true;
}

int64_t TarDataset::class_count() const { return files_->classes; }

std::vector<std::string> TarDataset::class_names() const {
  return numbered_class_names(files_->classes);
}

int TarDataset::channels() const {
  const int decoded = files_->options.decode.channels;
  return !files_->has_images ? 0 : decoded == 0 ? kUnknownChannels : decoded;
}

std::string TarDataset::describe(int64_t index) const {
  return files_->name(index, files_->parts(index));
}

uint64_t TarDataset::id(int64_t index) const {
  const std::string name = files_->parts(index).name;
  Hash64 hash;
  hash.add(split_name(name).key);
  return hash.value();
}

std::optional<int64_t> TarDataset::label(int64_t index) const {
  const int64_t label = files_->place(index).label;
  return label == kNoLabel ? std::nullopt : std::optional(label);
}

bool has_tar_files(const std::string& directory) {
  if (!folder_exists(directory)) {
    return false;
  }
  const std::vector<DirectoryEntry> entries = list_directory(directory);
  return std::any_of(entries.begin(), entries.end(), [](const DirectoryEntry& entry) {
    return !entry.is_directory && is_tar_name(entry.name);
  });
}

}  // namespace binade::data
