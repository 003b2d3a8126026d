// Checks every sample of a data folder; `binade verify-dataset` prints the report.
#pragma once
#include <binade/data/image_folder.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace binade::data {

struct DatasetPart {
  std::string name;                                           // "train", "test"
  int64_t samples = 0;                                        // bad ones too
  std::vector<std::pair<std::string, int64_t>> classes = {};  // samples of each, in label order
};

struct BadImage {
  std::string part, name, reason;
};

// Samples with the same pixels (after decoding, so in any format).
struct DuplicateGroup {
  std::vector<std::string> names;
  bool across_parts = false;  // one is in train, another in test
  bool has_several_labels = false;
};

struct DatasetReport {
  std::vector<DatasetPart> parts;
  std::vector<BadImage> bad;  // in the order of the samples
  std::vector<DuplicateGroup> duplicates;
  std::map<std::pair<int, int>, int64_t> sizes;  // (height, width) and the number of images
  int64_t decoded = 0;
  int64_t ignored_files = 0;            // of other kinds, in all parts
  std::vector<double> mean, deviation;  // per channel, of the pixels / 255 of train

  // True if no file is bad and no image is in both train and test.
  bool is_clean() const;
  int64_t leaks() const;  // groups that are in train and in test
};

struct VerifyOptions {
  ImageFolderOptions folder = {};
  Format format = Format::automatic;
  // Called now and then, by one thread at a time.
  std::function<void(int64_t done, int64_t total)> on_progress = nullptr;
};

// Decodes all samples on all threads. Throws Error if the folder cannot be opened, or if memory or
// file descriptors run out; a file that cannot be decoded goes into the report.
DatasetReport verify_dataset(const std::string& directory, const VerifyOptions& options = {});

// The report as text, with at most `shown` names of each kind; and all of it as one JSON object.
std::string to_string(const DatasetReport& report, size_t shown = 10);
std::string to_json(const DatasetReport& report);

}  // namespace binade::data
