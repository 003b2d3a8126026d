// Tests published models as files: GPT-2 in both layouts, after training in mixed precision, and a
// ResNet with torchvision's counters.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/gpt2.h>
#include <binade/nn/losses.h>
#include <binade/nn/resnet.h>
#include <binade/optim/adamw.h>
#include <binade/optim/loss_scaler.h>
#include <binade/train/model_file.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

namespace binade::train::gpt2_file_test {
namespace {

using binade::testing::TemporaryDirectory;

constexpr nn::Gpt2Options kSize{
    .vocabulary = 17, .context = 12, .width = 16, .layers = 2, .heads = 2, .dropout = 0};

// Makes texts [n, length] in which each token follows from the one before.
Tensor texts(int64_t n, int64_t length) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < n; ++i) {
    auto token = static_cast<int64_t>(randint(kSize.vocabulary, {1}).item());
    for (int64_t t = 0; t < length; ++t, token = (3 * token + 1) % kSize.vocabulary) {
      ids.push_back(token);
    }
  }
  return Tensor::from(ids, {n, length});
}

// Returns the losses of the first and the last step.
std::pair<double, double> trained(nn::Gpt2& model) {
  optim::AdamW adam(model.parameters(), {.lr = 5e-3});
  optim::LossScaler scaler;
  double first = 0, last = 0;
  for (int step = 0; step < 40; ++step) {
    const Tensor batch = texts(8, 13);
    const Tensor logits = model(slice(batch, 1, 0, 12));
    const Tensor loss = nn::cross_entropy(flatten(logits, 0, 1), flatten(slice(batch, 1, 1, 13)));
    last = loss.item();
    first = step == 0 ? last : first;
    scaler.scale(loss).backward();
    EXPECT_EQ(scaler.step(adam), StepOutcome::applied) << step;
  }
  return {first, last};
}

TEST(Gpt2File, TrainsInMixedPrecisionAndComesBackFromBothLayouts) {
  const TemporaryDirectory directory;
  manual_seed(1);
  nn::Gpt2 model(kSize);
  model.to({}, Precision::mixed(DType::f16));
  const auto [first, last] = trained(model);
  EXPECT_NEAR(first, std::log(17.0), 0.1);
  EXPECT_LT(last, first / 2);
  const Tensor prompt = texts(3, 4);
  model.eval();
  const Tensor want = model(prompt);
  save_model(directory / "own", model);
  save_tensors(directory / "published", model.published_state());
  for (const bool published : {false, true}) {
    nn::Gpt2 other(kSize);
    other.to({}, Precision::mixed(DType::f16));
    other.eval();
    published ? other.load_published(load_tensors(directory / "published"))
              : load_model(directory / "own", other);
    EXPECT_TRUE(equal(other(prompt), want)) << published;
  }
  const std::string wrong = error_of([&] { load_model(directory / "published", model); });
  EXPECT_NE(wrong.find("h.0.attn.c_attn.weight has [16, 48], expected [48, 16]"), std::string::npos)
      << wrong;
  EXPECT_NE(wrong.find("while loading"), std::string::npos) << wrong;
  EXPECT_TRUE(equal(model(prompt), want));
}

// A file with f32 values and a prefix, as other programs write it.
TEST(Gpt2File, ReadsRandomValuesInThePublishedLayout) {
  const TemporaryDirectory directory;
  manual_seed(2);
  nn::Gpt2 model(kSize);
  NamedTensors file;
  for (const auto& [name, tensor] : model.published_state()) {
    file.emplace_back("transformer." + name, randn(tensor.sizes()));
  }
  file.emplace_back("transformer.h.0.attn.bias", ones({1, 1, 12, 12}));
  save_tensors(directory / "file", file);
  const NamedTensors read = load_tensors(directory / "file");
  EXPECT_EQ(model.load_published(read).loaded.size(), 28u);
  const NamedTensors own = model.state();
  for (size_t i = 0; i < own.size(); ++i) {
    const auto& [name, value] = own[i];
    const bool turned = name.find(".c_") != std::string::npos && value.dim() == 2;
    EXPECT_TRUE(equal(turned ? value.transpose(0, 1) : value, file[i].second)) << name;
  }
}

TEST(ResNetFile, HasTorchvisionsNames) {
  const TemporaryDirectory directory;
  manual_seed(3);
  const nn::ResNetOptions size{.depth = 50, .classes = 3, .blocks = {1, 1, 1, 1}, .width = 2};
  nn::ResNet model(size), other(size);
  NamedTensors file;
  for (const auto& [name, value] : model.state()) {
    file.emplace_back(name, value + 0.1);
    if (name.ends_with("running_var")) {
      file.emplace_back(name.substr(0, name.size() - 11) + "num_batches_tracked",
                        full({}, 7).to(DType::i64));
    }
  }
  save_tensors(directory / "file", file);
  load_model(directory / "file", model);
  load_model(directory / "file", other, {.skip = {"fc"}});
  EXPECT_TRUE(equal(model.layer4[0].named_parameters()[0].second,
                    other.layer4[0].named_parameters()[0].second));
  EXPECT_FALSE(equal(model.fc.weight, other.fc.weight));
}

}  // namespace
}  // namespace binade::train::gpt2_file_test
