// A classifier read from its file predicts the same; files that are not classifiers are rejected.
#include <binade/binade.h>
#include <binade/data/glyphs.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

namespace binade::train::classifier_file_test {
namespace {

using binade::testing::TemporaryDirectory;

ClassifierInfo some_info() {
  return {.model = "cnn",
          .class_names = {"a", "b\n\"quoted\"", "ü", "d"},
          .channels = 3,
          .height = 16,
          .width = 12,
          .mean = {0.1f, 0.2f, 0.3f},
          .deviation = {0.5f, 0.25f, 1.5f}};
}

std::unique_ptr<nn::Module> some_model() {
  manual_seed(4);
  return nn::make_model("cnn", {.channels = 3, .height = 16, .width = 12, .classes = 4});
}

TEST(ClassifierFile, PredictsAsBefore) {
  const TemporaryDirectory directory;
  const std::string path = directory / "c.safetensors";
  const auto model = some_model();
  const uint64_t offset = generator().offset;
  save_classifier(path, *model, some_info());
  Classifier loaded = load_classifier(path);
  EXPECT_EQ(generator().offset, offset) << "random numbers of the program were used up";
  EXPECT_EQ(loaded.info().class_names, some_info().class_names);
  EXPECT_EQ(state_hash(loaded.model().state()), state_hash(model->state()));
  EXPECT_FALSE(loaded.model().is_training());

  const data::Image image = data::draw_glyph(3, {.size = 20}, 0, 5);
  data::save_png(directory / "p.png", image);
  const std::vector<Guess> guesses = loaded.classify(directory / "p.png", 9);
  ASSERT_EQ(guesses.size(), 4U);
  model->eval();
  const NoGradGuard guard;
  const Tensor x = data::to_tensor(data::resize_image(image, 16, 12),
                                   {.mean = some_info().mean, .deviation = some_info().deviation});
  const std::vector<float> p = softmax((*model)(unsqueeze(x, 0)), 1).to_vector<float>();
  double sum = 0;
  for (size_t i = 0; i < 4; ++i) {
    sum += guesses[i].probability;
    EXPECT_TRUE(i == 0 || guesses[i - 1].probability >= guesses[i].probability);
  }
  EXPECT_NEAR(sum, 1, 1e-6);
  const auto best = static_cast<size_t>(std::max_element(p.begin(), p.end()) - p.begin());
  EXPECT_EQ(guesses[0].name, some_info().class_names[best]);
  EXPECT_NEAR(guesses[0].probability, p[best], 1e-6);
  EXPECT_EQ(loaded.classify(image)[0].name, guesses[0].name);
}

TEST(ClassifierFile, RefusesWhatDoesNotFit) {
  const TemporaryDirectory directory;
  const std::string path = directory / "c.safetensors";
  const auto model = some_model();
  const auto refused = [&](ClassifierInfo info, const std::string& part) {
    const std::string error = error_of([&] { save_classifier(path, *model, info); });
    EXPECT_NE(error.find(part), std::string::npos) << error;
    EXPECT_FALSE(std::filesystem::exists(path));
  };
  ClassifierInfo info = some_info();
  info.class_names.pop_back();
  refused(info, "fc2");
  info.class_names.clear();
  refused(info, "got no class names");
  info = some_info();
  info.model = "transformer";
  refused(info, "mlp");
  info = some_info();
  info.mean.pop_back();
  refused(info, "got 2 means");
  info = some_info();
  info.height = 0;
  refused(info, "got pictures of 0 x 12 x 3");

  save_model(path, *model);
  EXPECT_NE(error_of([&] { load_classifier(path); }).find("which says nothing about classes"),
            std::string::npos);
  save_model(path, *model, {{"classifier", "{\"model\":3}"}});
  EXPECT_NE(error_of([&] { load_classifier(path); }).find("cannot be read"), std::string::npos);
  save_classifier(path, *model, some_info());
  Classifier loaded = load_classifier(path);
  EXPECT_NE(error_of([&] { loaded.classify(data::make_image(4, 4, 1)); }).find("1 channels"),
            std::string::npos);
  EXPECT_NE(error_of([&] { loaded.classify(path); }).find(path), std::string::npos);
  EXPECT_NE(error_of([&] { loaded.classify(data::make_image(4, 4, 3), 0); }).find("got 0 classes"),
            std::string::npos);
}

}  // namespace
}  // namespace binade::train::classifier_file_test
