// Makes checkpoints with known contents for tests.
#pragma once
#include <binade/train/checkpoint_store.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace binade::train {

inline std::string contents(const std::string& path, FileSystem& files = file_system()) {
  const std::vector<std::byte> bytes = read_file(path, 1 << 20, files);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::string model_of(int64_t step) {
  return text("model of step ", step, std::string(100, 'm'));
}
inline std::string optimizer_of(int64_t step) { return text("optimizer of step ", step); }

inline std::vector<CheckpointFile> files_of(int64_t step) {
  const auto file = [](const char* name, const std::string& bytes) {
    return CheckpointFile{name, bytes.size(), [bytes](OutputFile& out) { out.write(bytes); }};
  };
  return {file("model.safetensors", model_of(step)),
          file("optimizer.safetensors", optimizer_of(step))};
}

inline Checkpoint save(CheckpointStore& store, int64_t step) {
  return store.save(step, files_of(step), {{"epoch", text(step / 10)}, {"seed", "7"}});
}

// Checks that the checkpoint holds what save() wrote for its step.
inline void expect_whole(const Checkpoint& checkpoint, FileSystem& files = file_system()) {
  EXPECT_EQ(contents(checkpoint.file("model.safetensors"), files), model_of(checkpoint.step));
  EXPECT_EQ(contents(checkpoint.file("optimizer.safetensors"), files),
            optimizer_of(checkpoint.step));
  EXPECT_EQ(checkpoint.fields.at("seed"), "7");
}

inline std::vector<std::string> names_in(const std::string& path,
                                         FileSystem& files = file_system()) {
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : list_directory(path, files)) {
    names.push_back(entry.name);
  }
  return names;
}

using Names = std::vector<std::string>;

// Flips one bit; a second call restores it.
inline void flip(const std::string& path) {
  std::string bytes = contents(path);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
  std::ofstream(path, std::ios::binary) << bytes;
}

// Maps every path in a directory to the bytes of its file.
inline std::map<std::string, std::string> tree(const std::string& path) {
  std::map<std::string, std::string> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    const bool is_file = entry.is_regular_file() && !entry.is_symlink();
    all[entry.path().native()] = is_file ? contents(entry.path().native()) : "";
  }
  return all;
}

}  // namespace binade::train
