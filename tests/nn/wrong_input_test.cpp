// Every layer on inputs that it was not made for: an Error, or a result that can be read and
// differentiated. Nothing crashes, and the layer still works afterwards.
#include <binade/binade.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>

namespace binade::nn::wrong_input_test {
namespace {

struct Case {
  std::string name;
  std::unique_ptr<Module> layer;
  Tensor right;
};

template <class Layer, class... Options>
void add(std::vector<Case>& cases, const char* name, const Tensor& right,
         const Options&... options) {
  cases.push_back({name, std::make_unique<Layer>(options...), right});
}

std::vector<Case> layers() {
  std::vector<Case> all;
  const Tensor rows = randn({4, 6}), lines = randn({2, 6, 9}), images = randn({2, 6, 8, 8});
  const Tensor ids = randint(5, {3, 4});
  add<Linear>(all, "Linear", rows, LinearOptions{.in = 6, .out = 3});
  add<Conv1d>(all, "Conv1d", lines, Conv1dOptions{.in = 6, .out = 3, .kernel = 3});
  add<Conv2d>(all, "Conv2d", images, Conv2dOptions{.in = 6, .out = 3, .kernel = 3});
  add<Conv2d>(all, "Conv2d groups", images,
              Conv2dOptions{.in = 6, .out = 6, .kernel = 3, .groups = 6});
  add<ConvTranspose1d>(all, "ConvTranspose1d", lines,
                       ConvTranspose1dOptions{.in = 6, .out = 3, .kernel = 2});
  add<ConvTranspose2d>(all, "ConvTranspose2d", images,
                       ConvTranspose2dOptions{.in = 6, .out = 3, .kernel = 2});
  add<BatchNorm1d>(all, "BatchNorm1d", rows, BatchNorm1dOptions{.channels = 6});
  add<BatchNorm2d>(all, "BatchNorm2d", images, BatchNorm2dOptions{.channels = 6});
  add<LayerNorm>(all, "LayerNorm", rows, LayerNormOptions{.normalized_shape = {6}});
  add<RMSNorm>(all, "RMSNorm", rows, RMSNormOptions{.normalized_shape = {6}});
  add<GroupNorm>(all, "GroupNorm", images, GroupNormOptions{.groups = 3, .channels = 6});
  add<InstanceNorm1d>(all, "InstanceNorm1d", lines, InstanceNorm1dOptions{.channels = 6});
  add<InstanceNorm2d>(all, "InstanceNorm2d", images, InstanceNorm2dOptions{.channels = 6});
  add<MaxPool1d>(all, "MaxPool1d", lines, MaxPool1dOptions{.kernel = 2});
  add<MaxPool2d>(all, "MaxPool2d", images, MaxPool2dOptions{.kernel = 2});
  add<AvgPool1d>(all, "AvgPool1d", lines, AvgPool1dOptions{.kernel = 2});
  add<AvgPool2d>(all, "AvgPool2d", images, AvgPool2dOptions{.kernel = 2});
  add<AdaptiveAvgPool2d>(all, "AdaptiveAvgPool2d", images, AdaptiveAvgPool2dOptions{.output = 3});
  add<GlobalAvgPool>(all, "GlobalAvgPool", images);
  add<Embedding>(all, "Embedding", ids, EmbeddingOptions{.count = 5, .width = 3, .padding_idx = 0});
  add<EmbeddingBag>(all, "EmbeddingBag", ids,
                    EmbeddingBagOptions{.count = 5, .width = 3, .padding_idx = 0});
  add<EmbeddingBag>(all, "EmbeddingBag of maxima", ids,
                    EmbeddingBagOptions{.count = 5, .width = 3, .mode = BagMode::max});
  add<Upsample>(all, "Upsample", images, UpsampleOptions{.scale_factor = 1.5});
  add<ZeroPad2d>(all, "ZeroPad2d", images, Pad2dOptions{.left = 1, .bottom = 2});
  add<ReflectionPad2d>(all, "ReflectionPad2d", images, Pad2dOptions{.left = 1, .bottom = 2});
  add<Unflatten>(all, "Unflatten", rows, UnflattenOptions{.dim = 1, .sizes = {2, -1}});
  add<Flatten>(all, "Flatten", images);
  add<GLU>(all, "GLU", rows);
  add<PReLU>(all, "PReLU", images, PReLUOptions{.channels = 6});
  add<Softmax>(all, "Softmax", rows);
  add<Dropout>(all, "Dropout", rows, DropoutOptions{.p = 0.5});
  add<Dropout2d>(all, "Dropout2d", images, DropoutOptions{.p = 0.5});
  add<GELU>(all, "GELU", rows);
  add<ReLU>(all, "ReLU", rows);
  add<RNN>(all, "RNN", lines, RNNOptions{.input = 9, .hidden = 5});
  add<LSTM>(all, "LSTM", lines, RNNOptions{.input = 9, .hidden = 5, .bidirectional = true});
  add<GRU>(all, "GRU", lines, RNNOptions{.input = 9, .hidden = 5, .layers = 2});
  add<TransformerEncoderLayer>(all, "TransformerEncoderLayer", randn({2, 3, 8}),
                               TransformerLayerOptions{.embed = 8, .heads = 2, .feedforward = 16});
  add<MLP>(all, "MLP", rows, MLPOptions{.in = 6, .hidden = {5}, .classes = 3});
  add<CNN>(all, "CNN", randn({2, 1, 12, 12}), CNNOptions{.height = 12, .width = 12});
  add<ResNet>(
      all, "ResNet", randn({2, 3, 32, 32}),
      ResNetOptions{.classes = 4, .small_images = true, .blocks = {1, 1, 1, 1}, .width = 4});
  add<Gpt2>(all, "Gpt2", ids,
            Gpt2Options{.vocabulary = 5, .context = 8, .width = 8, .layers = 1, .heads = 2});
  return all;
}

std::vector<Tensor> wrong_inputs(const Tensor& right) {
  const auto filled = [&](const Dims& sizes) {
    return is_floating(right.dtype()) ? full(sizes, 0.5) : zeros(sizes, right.dtype());
  };
  std::vector<Tensor> all = {Tensor(), filled({}), filled({7}), filled({0})};
  for (int d = 0; d < right.dim(); ++d) {
    for (const int64_t size : {int64_t{0}, int64_t{1}, right.size(d) + 1}) {
      Dims sizes = right.sizes();
      sizes[d] = size;
      all.push_back(filled(sizes));
    }
  }
  Dims more = right.sizes();
  more.push_back(2);
  all.push_back(filled(more));
  for (const DType dtype : {DType::boolean, DType::u8, DType::i32, DType::i64, DType::f16,
                            DType::bf16, DType::f32, DType::f64}) {
    all.push_back(ones(right.sizes(), dtype));
  }
  for (const int64_t index : {INT64_MIN, int64_t{-1}, int64_t{1} << 40, INT64_MAX}) {
    all.push_back(full(right.sizes(), 0, DType::i64) + Tensor::from(std::vector{index}));
  }
  return all;
}

void run(Module& layer, const Tensor& x) {
  const Tensor y = layer(x);
  if (y.numel() > 0) {
    y.at(y.numel() - 1);
  }
  if (y.requires_grad() && y.numel() > 0) {
    backward(sum(y));
  }
}

TEST(WrongInput, IsAnErrorOrWorks) {
  manual_seed(1);
  for (Case& one : layers()) {
    run(*one.layer, one.right);
    for (const bool training : {true, false}) {
      training ? one.layer->train() : one.layer->eval();
      for (const Tensor& x : wrong_inputs(one.right)) {
        SCOPED_TRACE(text(one.name, x.defined() ? text(" on ", x.dtype(), " ", x.sizes())
                                                : std::string(" on an undefined tensor")));
        try {
          run(*one.layer, x);
          EXPECT_TRUE(x.defined());
        } catch (const Error& error) {
          EXPECT_NE(std::string(error.what()).find(": got "), std::string::npos) << error.what();
        }
      }
      run(*one.layer, one.right);
    }
  }
}

}  // namespace
}  // namespace binade::nn::wrong_input_test
