// Targets for containers of samples: manifests and samples of a packed store, tar files, CIFAR's
// records.
#include <binade/core/io/file_system.h>
#include <binade/data/sets/cifar.h>
#include <binade/data/sets/tar_reader_internal.h>
#include <binade/data/store/store_format_internal.h>
#include <binade/kernels/base/error.h>

#include <filesystem>
#include <fstream>

#include "tests/fuzz/target_list_internal.h"

namespace binade::fuzz {

void parse_store_manifest(Bytes bytes) {
  const data::StoreManifest manifest =
      data::parse_store_manifest("binade-store.txt", text_of(bytes));
  require(data::to_text(manifest) == text_of(bytes), "a manifest is written as it was read");
  for (const data::ShardEntry& shard : manifest.shards) {
    require(shard.index_offset() < shard.bytes, "a shard has room for its records");
  }
}

void parse_store_sample(Bytes bytes) {
  const auto all = std::as_bytes(bytes);
  const data::SampleView view = data::parse_sample(all);
  const auto inside = [&](const auto* begin, size_t size) {
    const auto* first = reinterpret_cast<const std::byte*>(begin);
    return size == 0 || (first >= all.data() && first + size <= all.data() + all.size());
  };
  require(inside(view.origin.data(), view.origin.size()) &&
              inside(view.image.pixels.data(), view.image.pixels.size()) &&
              inside(view.encoded.data(), view.encoded.size()) &&
              inside(view.rest.data(), view.rest.size()),
          "the parts of a sample lie within it");
  require(view.encoded.empty() || view.image.pixels.empty(), "a sample has one image");
  require(view.image.pixels.size() ==
              size_t(view.image.height) * size_t(view.image.width) * size_t(view.image.channels),
          "an image has as many pixels as its sizes say");
}

void parse_tar(Bytes bytes) {
  const auto file = std::as_bytes(bytes);
  const std::string path = "fuzz.tar";
  data::TarReader reader(file, path);
  data::TarMember member;
  uint64_t end = 0;
  while (reader.next(member)) {
    require(member.begin >= end && member.begin < file.size(), "members follow one another");
    end = member.begin + 512;
    require(member.bytes.empty() ||
                (member.bytes.data() >= file.data() &&
                 member.bytes.data() + member.bytes.size() <= file.data() + file.size()),
            "a member lies within the file");
    data::TarMember same;
    data::TarReader from(file, path, member.begin);
    require(from.next(same) && same.name == member.name && same.bytes.data() == member.bytes.data(),
            "a member is found where it begins");
  }
}

// A file of CIFAR-10; or, with a line "== names" after it, of CIFAR-100 with these names of
// classes.
void parse_cifar(Bytes bytes) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("binade-fuzz-cifar-" + process_token());
  std::filesystem::create_directories(folder);
  constexpr std::string_view kMark = "== names\n";
  const std::string_view all = text_of(bytes);
  const size_t mark = all.rfind(kMark);
  const bool hundred = mark != all.npos;
  const std::string_view records = all.substr(0, mark);
  const auto write = [&](const char* name, std::string_view text) {
    std::ofstream(folder / name, std::ios::binary) << text;
  };
  write(hundred ? "train.bin" : "data_batch_1.bin", records);
  write(hundred ? "test.bin" : "test_batch.bin", records);
  write("fine_label_names.txt", hundred ? all.substr(mark + kMark.size()) : "");
  try {
    const data::CifarDataset set(folder, data::Part::train);
    require(set.size() * (hundred ? 3074 : 3073) == static_cast<int64_t>(records.size()),
            "every record is a sample");
    require(set.label(set.size() - 1) < set.class_count(), "a label is a class");
  } catch (...) {
    std::filesystem::remove_all(folder);
    throw;
  }
  std::filesystem::remove_all(folder);
}

}  // namespace binade::fuzz
