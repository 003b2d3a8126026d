// A dataset whose pictures encode their index; tests can plant faults in it.
#pragma once
#include <binade/data/dataset.h>
#include <binade/kernels/base/error.h>

#include <functional>
#include <new>
#include <stdexcept>
#include <string>

namespace binade::data::test {

class FakeDataset : public Dataset {
 public:
  explicit FakeDataset(int64_t size, int side = 4, int channels = 3)
      : size_(size), side_(side), channels_(channels) {}

  int64_t size() const override { return size_; }
  Sample get(int64_t index) const override {
    if (before_get) {
      before_get(index);
    }
    Sample sample{make_image(side_, side_, channels_), index % 10};
    for (size_t i = 0; i < sample.image.pixels.size(); ++i) {
      sample.image.pixels[i] = static_cast<uint8_t>(index * 7 + static_cast<int64_t>(i) * 3);
    }
    return sample;
  }
  int64_t class_count() const override { return 10; }
  std::vector<std::string> class_names() const override {
    return std::vector<std::string>(10, "class");
  }
  int channels() const override { return channels_; }
  std::string describe(int64_t index) const override { return text("fake/", index, ".png"); }

  std::function<void(int64_t index)> before_get;  // may throw or wait

 private:
  int64_t size_;
  int side_, channels_;
};

}  // namespace binade::data::test
