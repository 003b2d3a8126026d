// Reads a model that another library trained on MNIST from safetensors: y = W2 leaky(W1 x).
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/data/idx.h>
#include <binade/train/model_file.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

namespace binade::train::tinygrad_model_test {
namespace {

namespace fs = std::filesystem;

fs::path shared_data() {
  const char* given = std::getenv("BINADE_SHARED");
  return (given != nullptr ? fs::path(given) : fs::path(BINADE_SOURCE_DIR) / ".." / "shared") /
         "data";
}

Tensor images_of(const data::IdxDataset& dataset) {
  const int64_t pixels = int64_t{dataset.height()} * dataset.width();
  Tensor x = empty({dataset.size(), pixels}, DType::f32);
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const data::Sample sample = dataset.get(i);
    for (int64_t j = 0; j < pixels; ++j) {
      x.data<float>()[i * pixels + j] = sample.image.pixels[static_cast<size_t>(j)];
    }
  }
  return x;
}

TEST(TinygradModelTest, ClassifiesExactlyAsManyAsItsAuthorsLibrary) {
  const fs::path file = shared_data() / "safetensors/misc/mnist-tinygrad-model.safetensors";
  if (!fs::exists(file) || !fs::exists(shared_data() / "mnist")) {
    GTEST_SKIP() << "skipped: no ../shared";
  }
  const NamedTensors tensors = load_tensors(file.native());
  const std::map<std::string, Tensor> weights(tensors.begin(), tensors.end());
  ASSERT_EQ(weights.size(), 2u);
  const data::IdxDataset dataset(shared_data() / "mnist", data::Part::test);
  ASSERT_EQ(dataset.size(), 10000);
  NoGradGuard no_grad;
  const Tensor hidden = leaky_relu(linear(images_of(dataset), weights.at("l1.weight")), 0.01);
  const Tensor classes = argmax(linear(hidden, weights.at("l2.weight")), 1);
  int64_t correct = 0;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    correct += classes.data<int64_t>()[i] == dataset.get(i).label;
  }
  EXPECT_EQ(correct, 9097);
}

}  // namespace
}  // namespace binade::train::tinygrad_model_test
