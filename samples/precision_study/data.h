// The training data of the experiments: small pictures of glyphs and a text of a toy language, both
// generated from a seed, or the user's files.
#pragma once
#include <binade/binade.h>

#include <memory>
#include <string>
#include <vector>

namespace study {

using namespace binade;

struct Pictures {
  Tensor images;  // [N, C, H, W] f32, about zero mean and unit deviation
  Tensor labels;  // [N] i64
  int64_t count() const { return images.size(0); }
};

struct PictureSet {
  std::string source;  // a description for the page
  int64_t classes;
  Pictures train, test;
};

// Characters as numbers 0, 1, ... below `symbols`.
struct Text {
  std::string source;
  int64_t symbols;
  std::vector<int64_t> train, test;
};

// Reads or generates each set at its first use.
class Data {
 public:
  // `directory` is empty or has idx files (also in mnist/ or fashion-mnist/) and input.txt (also in
  // tinyshakespeare/). A set that is not there is generated; a directory with neither is an error.
  // Sets are on the CPU; models are trained on `device`.
  Data(const std::string& directory, Device device);
  Device device() const { return device_; }
  const PictureSet& pictures();
  const Text& text();

 private:
  Device device_;
  std::string idx_directory_, text_file_;
  std::unique_ptr<PictureSet> pictures_;
  std::unique_ptr<Text> text_;
};

}  // namespace study
