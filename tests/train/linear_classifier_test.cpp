// The generated images need more than one template per class: a linear classifier stays below 80%.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/data/glyphs.h>
#include <binade/nn/linear.h>
#include <binade/optim/adamw.h>
#include <binade/train/classifier_data.h>
#include <binade/train/trainer.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace binade::train::linear_classifier_test {
namespace {

namespace fs = std::filesystem;

// One linear layer over all pixels.
class LinearClassifier : public nn::Module {
 public:
  LinearClassifier(int64_t in, int64_t classes) : fc_({.in = in, .out = classes}) {
    register_module("fc", fc_);
  }
  Tensor forward(const Tensor& x) override { return fc_(flatten(x, 1)); }

 private:
  nn::Linear fc_;
};

class GlyphFolder {
 public:
  GlyphFolder() : path_(fs::temp_directory_path() / ("binade-linear-" + std::to_string(getpid()))) {
    data::make_glyph_folder(path_, {});
  }
  ~GlyphFolder() { fs::remove_all(path_); }
  GlyphFolder(const GlyphFolder&) = delete;
  GlyphFolder& operator=(const GlyphFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

TEST(LinearClassifierTest, StaysBelowEightyPercentOnGlyphs) {
  const GlyphFolder folder;
  const ClassifierData data =
      open_classifier_data({.path = folder.path().native(), .augment = Augment::none});
  manual_seed(0);
  LinearClassifier model(int64_t{3} * data.height * data.width,
                         static_cast<int64_t>(data.class_names.size()));
  optim::AdamW optimizer(model.parameters(), {.lr = 3e-4});
  Trainer trainer({.model = model, .optimizer = optimizer}, {.epochs = 10, .progress = false});
  trainer.fit(*data.train, data.validation.get());
  const Evaluation train = trainer.validate(*data.train), test = trainer.test(*data.test);
  const double train_accuracy = train["accuracy"], test_accuracy = test["accuracy"];
  RecordProperty("train_accuracy", std::to_string(train_accuracy));
  RecordProperty("test_accuracy", std::to_string(test_accuracy));
  std::printf("linear classifier: train %.1f%%, test %.1f%%\n", 100 * train_accuracy,
              100 * test_accuracy);
  EXPECT_GT(train_accuracy, 0.15) << "it must have learnt something";
  EXPECT_LE(test_accuracy, 0.8);
}

}  // namespace
}  // namespace binade::train::linear_classifier_test
