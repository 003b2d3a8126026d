#include <binade/core/io/file_system.h>
#include <binade/core/io/hash64.h>
#include <binade/data/decode_internal.h>
#include <binade/data/idx.h>
#include <binade/data/sample_internal.h>
#include <binade/data/window/geometry_internal.h>
#include <binade/data/window/image_request.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>

namespace binade::data {
namespace {

constexpr size_t kMaxHeader = 4 + 4 * 4;
constexpr uint64_t kStep = uint64_t(4) << 20;  // bytes inflated at a time
constexpr uint64_t kMaxDeflateRatio = 1032;    // deflate cannot compress more

// The bytes of a plain or gzip-compressed file, read from front to back.
class Source {
 public:
  Source(std::string path, int64_t max_bytes, Checksums checksums)
      : path_(std::move(path)), bytes_(read_file(path_, max_bytes)) {
    if (const auto expected = expected_checksum(path_, checksums)) {
      verify_checksum(path_, *expected, bytes_);
    }
    compressed_ = bytes_.size() >= 2 && bytes_[0] == 0x1f && bytes_[1] == 0x8b;
    if (compressed_) {
      stream_.next_in = bytes_.data();
      constexpr int kGzipWindow = 15 + 16;
      check(::inflateInit2(&stream_, kGzipWindow) == Z_OK, path_, ": zlib cannot start");
    }
  }
  ~Source() {
    if (compressed_) {
      ::inflateEnd(&stream_);
    }
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  const std::string& path() const { return path_; }
  // An upper bound for the unpacked bytes that are left.
  uint64_t capacity() const {
    return compressed_ ? bytes_.size() * kMaxDeflateRatio : bytes_.size() - at_;
  }
  bool compressed() const { return compressed_; }
  size_t file_bytes() const { return bytes_.size(); }
  // Reads `count` bytes; fewer only at the end.
  size_t read(uint8_t* to, size_t count) {
    if (compressed_) {
      return inflate(to, count);
    }
    count = std::min(count, bytes_.size() - at_);
    std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(at_), count, to);
    at_ += count;
    return count;
  }
  // Throws if data are left. Also checks the checksums.
  void expect_end() {
    uint8_t extra = 0;
    check(read(&extra, 1) == 0, path_, ": idx file is longer than its header says");
    check(!compressed_ || at_ == bytes_.size(), path_, ": ", bytes_.size() - at_,
          " bytes after the end of the gzip data");
  }

 private:
  size_t inflate(uint8_t* to, size_t count) {
    size_t done = 0;
    while (done < count && !ended_) {
      constexpr size_t kMost = size_t(1) << 30;  // zlib counts in 32 bits
      stream_.next_out = to + done;
      stream_.avail_out = static_cast<uInt>(std::min(count - done, kMost));
      stream_.avail_in = static_cast<uInt>(std::min(bytes_.size() - at_, kMost));
      const uInt had_in = stream_.avail_in, had_out = stream_.avail_out;
      const int status = ::inflate(&stream_, Z_NO_FLUSH);
      at_ += had_in - stream_.avail_in;
      done += had_out - stream_.avail_out;
      ended_ = status == Z_STREAM_END;
      const bool stuck = had_in == stream_.avail_in && had_out == stream_.avail_out;
      if (!ended_ && (status == Z_BUF_ERROR || (status == Z_OK && stuck))) {
        fail(path_, ": truncated gzip data");
      }
      check(ended_ || status == Z_OK, path_,
            ": corrupt gzip data: ", stream_.msg != nullptr ? stream_.msg : "unknown reason");
    }
    return done;
  }

  std::string path_;
  std::vector<uint8_t> bytes_;
  bool compressed_ = false, ended_ = false;
  size_t at_ = 0;
  z_stream stream_{};
};

// The bytes per element of a type; 0 if it is not supported.
int bytes_of_type(uint8_t type) { return type == 8 ? 1 : type == 11 ? 2 : type == 12 ? 4 : 0; }

void read_header(Source& source, IdxArray& array) {
  std::array<uint8_t, kMaxHeader> header{};
  check(source.read(header.data(), 4) == 4, source.path(),
        ": too short for an idx file, expected at least 4 bytes");
  check(header[0] == 0 && header[1] == 0, source.path(),
        ": not an idx file: it does not start with two zero bytes");
  array.element_bytes = bytes_of_type(header[2]);
  check(array.element_bytes != 0, source.path(), ": idx element type ", int{header[2]},
        ", expected 8 (unsigned bytes), or 11 or 12 (integers of 2 or 4 bytes)");
  const size_t rank = header[3];
  check(rank >= 1 && rank <= 4, source.path(), ": idx rank ", rank, ", expected 1 to 4");
  check(source.read(&header[4], 4 * rank) == 4 * rank, source.path(),
        ": truncated in the idx header");
  for (size_t i = 0; i < rank; ++i) {
    array.sizes.push_back(internal::read_u32_be(&header[4 + 4 * i]));
  }
}

// The product of the sizes and a factor: 0 if a size is 0, or the largest number if it exceeds 64
// bits.
uint64_t saturated_product(const std::vector<int64_t>& sizes, int factor) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) {
    return 0;
  }
  unsigned __int128 product = static_cast<uint64_t>(factor);
  for (int64_t size : sizes) {
    product *= static_cast<uint64_t>(size);
    if (product > UINT64_MAX) {
      return UINT64_MAX;
    }
  }
  return static_cast<uint64_t>(product);
}

// A plain file is read at once, since it was checked to hold the elements. A gzip file is unpacked
// in steps, so a wrong header costs no more memory than the file's contents.
std::vector<uint8_t> read_elements(Source& source, uint64_t count, const IdxLimits& limits) {
  const auto start = std::chrono::steady_clock::now();
  const double seconds = limits.max_seconds * (1 + static_cast<double>(source.file_bytes()) / 10e6);
  const uint64_t step = source.compressed() ? kStep : count;
  std::vector<uint8_t> elements;
  for (uint64_t done = 0; done < count; done = elements.size()) {
    const uint64_t wanted = std::min(count - done, step);
    elements.resize(done + wanted);
    const size_t got = source.read(&elements[done], wanted);
    check(got == wanted, source.path(), ": truncated: the idx header says ", count,
          " bytes, the file holds ", done + got);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    check(!source.compressed() || taken.count() <= seconds, source.path(),
          ": unpacking takes longer than ", seconds, " s, the limit (IdxLimits::max_seconds)");
  }
  return elements;
}

// The largest label of the existing parts, plus one.
int64_t classes_of_parts(const std::string& directory, Part part) {
  const InputFile images(idx_file(directory, part, true));  // if it is missing, that is the error
  const std::string other =
      idx_file(directory, part == Part::train ? Part::test : Part::train, false);
  std::error_code ignored;
  const int64_t own = idx_classes(idx_file(directory, part, false));  // its errors come first
  return std::filesystem::is_regular_file(other, ignored) ? std::max(own, idx_classes(other)) : own;
}

}  // namespace

std::string idx_file(const std::string& directory, Part part, bool images) {
  const std::string name = std::string(part == Part::train ? "train" : "t10k") +
                           (images ? "-images-idx3-ubyte" : "-labels-idx1-ubyte");
  const std::filesystem::path plain = std::filesystem::path(directory) / name;
  const std::filesystem::path packed = plain.native() + ".gz";
  std::error_code ignored;
  return !std::filesystem::exists(plain, ignored) && std::filesystem::exists(packed, ignored)
             ? packed.native()
             : plain.native();
}

IdxArray read_idx(const std::string& path, const IdxLimits& limits, Checksums checksums) {
  Source source(path, limits.max_bytes, checksums);
  IdxArray array;
  read_header(source, array);
  const uint64_t count = saturated_product(array.sizes, array.element_bytes);
  check(count <= static_cast<uint64_t>(std::max<int64_t>(limits.max_bytes, 0)), path,
        ": the idx header says ", count, " bytes, the limit is ", limits.max_bytes);
  check(count <= source.capacity(), path, ": truncated or corrupt: the idx header says ", count,
        " bytes, the file holds at most ", source.capacity());
  check(
      !source.compressed() || count <= static_cast<uint64_t>(limits.ratio_from) ||
          static_cast<double>(count) <= limits.max_ratio * static_cast<double>(source.file_bytes()),
      path, ": the idx header says ", count, " bytes from ", source.file_bytes(),
      ", the limit is a ratio of ", limits.max_ratio, " (IdxLimits::max_ratio)");
  array.elements = read_elements(source, count, limits);
  source.expect_end();
  return array;
}

std::vector<int32_t> read_idx_labels(const std::string& path, Checksums checksums) {
  const IdxArray array = read_idx(path, {}, checksums);
  check(array.sizes.size() == 1, path, ": idx rank ", array.sizes.size(),
        ", expected labels [count]");
  const auto bytes = static_cast<size_t>(array.element_bytes);
  std::vector<int32_t> labels(static_cast<size_t>(array.sizes[0]));
  for (size_t i = 0; i < labels.size(); ++i) {
    uint32_t value = 0;
    for (size_t b = 0; b < bytes; ++b) {
      value = value << 8 | array.elements[i * bytes + b];
    }
    labels[i] = bytes == 2 ? static_cast<int16_t>(value) : static_cast<int32_t>(value);
    check(labels[i] >= 0, path, ": label ", labels[i], " at index ", i,
          ", expected a class of 0 or more");
  }
  return labels;
}

int64_t idx_classes(const std::string& labels, Checksums checksums) {
  const std::vector<int32_t> all = read_idx_labels(labels, checksums);
  return all.empty() ? 0 : int64_t{*std::max_element(all.begin(), all.end())} + 1;
}

bool has_idx_files(const std::string& directory) {
  for (Part part : {Part::train, Part::test}) {
    for (bool images : {true, false}) {
      std::error_code ignored;
      if (!std::filesystem::is_regular_file(idx_file(directory, part, images), ignored)) {
        return false;
      }
    }
  }
  return true;
}

IdxDataset::IdxDataset(const std::string& directory, Part part, int64_t classes)
    : IdxDataset(idx_file(directory, part, true), idx_file(directory, part, false),
                 classes > 0 ? classes : classes_of_parts(directory, part)) {}

IdxDataset::IdxDataset(const std::string& images, const std::string& labels, int64_t classes,
                       Checksums checksums)
    : path_(images),
      images_(read_idx(images, {}, checksums)),
      labels_(read_idx_labels(labels, checksums)),
      classes_(classes) {
  check(images_.element_bytes == 1, path_, ": images of integers of ", images_.element_bytes,
        " bytes, expected unsigned bytes");
  check(images_.sizes.size() >= 3, path_, ": idx rank ", images_.sizes.size(),
        ", expected images [count, height, width]");
  check(images_.sizes[0] == std::ssize(labels_), path_, ": ", images_.sizes[0], " images, but ",
        labels, " has ", labels_.size(), " labels");
  constexpr int64_t kMaxSide = 32'768;
  check(images_.sizes[1] >= 1 && images_.sizes[1] <= kMaxSide && images_.sizes[2] >= 1 &&
            images_.sizes[2] <= kMaxSide,
        path_, ": images of ", images_.sizes[1], " x ", images_.sizes[2],
        " pixels, expected sides of 1 to ", kMaxSide);
  const int64_t channels = images_.sizes.size() == 4 ? images_.sizes[3] : 1;
  check(channels == 1 || channels == 3, path_, ": ", channels, " channels, expected 1 or 3");
  channels_ = static_cast<int>(channels);
  for (size_t i = 0; i < labels_.size() && classes > 0; ++i) {
    check(labels_[i] < classes, labels, ": label ", labels_[i], " at index ", i,
          ", expected less than ", classes, " classes");
  }
  if (classes_ == 0 && !labels_.empty()) {
    classes_ = int64_t{*std::max_element(labels_.begin(), labels_.end())} + 1;
  }
}

std::span<const uint8_t> IdxDataset::pixels_of(int64_t index) const {
  check(index >= 0 && index < size(), path_, ": got index ", index, ", expected one of ", size());
  const size_t bytes = size_t(height()) * size_t(width()) * size_t(channels_);
  return std::span(images_.elements).subspan(size_t(index) * bytes, bytes);
}

Sample IdxDataset::get(int64_t index) const {
  Sample sample;
  copy_to(index, sample);
  return sample;
}

void IdxDataset::read(int64_t index, ImageRequest& request, Sample& sample) const {
  if (!request.has_window()) {
    copy_to(index, sample);
    return;
  }
  const internal::PixelView view{.pixels = pixels_of(index).data(),
                                 .stride = ptrdiff_t{width()} * channels_,
                                 .channels = channels_,
                                 .height = height(),
                                 .width = width()};
  request.plan(height(), width()).apply(view, sample.image);
  sample.label = labels_[static_cast<size_t>(index)];
}

void IdxDataset::copy_to(int64_t index, Sample& sample) const {
  const std::span<const uint8_t> pixels = pixels_of(index);
  sample.image.height = height();
  sample.image.width = width();
  sample.image.channels = channels_;
  sample.image.pixels.assign(pixels.begin(), pixels.end());
  sample.label = labels_[static_cast<size_t>(index)];
}

uint64_t IdxDataset::id(int64_t index) const {
  Hash64 hash;
  hash.add(std::as_bytes(pixels_of(index)));
  return hash.value();
}

std::optional<int64_t> IdxDataset::label(int64_t index) const {
  return labels_.at(static_cast<size_t>(index));
}

std::vector<std::string> IdxDataset::class_names() const { return numbered_class_names(classes_); }

std::string IdxDataset::describe(int64_t index) const { return text(path_, ":", index); }

}  // namespace binade::data
