// The family models (the project's own: generate_models.py): logits, loss and gradients, then the
// losses of a few optimizer steps. In f16 and bf16 the models run under the policy `mixed`, as they
// would be trained.
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/conv.h>
#include <binade/nn/gpt2.h>
#include <binade/nn/linear.h>
#include <binade/nn/losses.h>
#include <binade/nn/models.h>
#include <binade/nn/norm.h>

#include <algorithm>
#include <cmath>

#include <tests/kernels/support/test_device.h>
#include <tests/op_table/compare.h>
#include <tests/parity/sequence_models.h>
#include <tests/parity/training_support.h>

namespace binade::parity {
namespace {

// conv1, bn1, relu, pooling, one residual block, mean over the image, fc: as the cases describe it.
class ConvNet : public nn::Module {
 public:
  struct Options {
    int64_t in, width, classes;
    double eps, momentum;
  };
  explicit ConvNet(const Options& o)
      : conv1_({.in = o.in, .out = o.width, .kernel = 3, .padding = 1, .bias = false}),
        conv2_({.in = o.width, .out = o.width, .kernel = 3, .padding = 1, .bias = false}),
        conv3_({.in = o.width, .out = o.width, .kernel = 3, .padding = 1, .bias = false}),
        bn1_({.channels = o.width, .eps = o.eps, .momentum = o.momentum}),
        bn2_({.channels = o.width, .eps = o.eps, .momentum = o.momentum}),
        bn3_({.channels = o.width, .eps = o.eps, .momentum = o.momentum}),
        fc_({.in = o.width, .out = o.classes}) {
    register_module("conv1", conv1_);
    register_module("bn1", bn1_);
    register_module("conv2", conv2_);
    register_module("bn2", bn2_);
    register_module("conv3", conv3_);
    register_module("bn3", bn3_);
    register_module("fc", fc_);
  }
  Tensor forward(const Tensor& x) override {
    Tensor h = max_pool2d(relu(bn1_(conv1_(x))), {.kernel = {2, 2}, .stride = {2, 2}});
    h = relu(h + bn3_(conv3_(relu(bn2_(conv2_(h))))));
    return fc_(mean(h, {2, 3}));
  }

 private:
  nn::Conv2d conv1_, conv2_, conv3_;
  nn::BatchNorm2d bn1_, bn2_, bn3_;
  nn::Linear fc_;
};

std::unique_ptr<nn::Module> make_resnet(const CaseFile& file, const Case& c) {
  const auto sizes = [&](const char* name) { return file.values(c.inputs.at(name)).sizes; };
  return std::make_unique<nn::ResNet>(
      nn::ResNetOptions{.depth = c.attrs.at("depth"),
                        .classes = sizes("fc.weight")[0],
                        .channels = sizes("conv1.weight")[1],
                        .small_images = c.attrs.at("small_images"),
                        .blocks = c.attrs.at("blocks").get<std::vector<int64_t>>(),
                        .width = sizes("conv1.weight")[0]});
}

std::unique_ptr<nn::Module> make_gpt2(const CaseFile& file, const Case& c) {
  const Dims tokens = file.values(c.inputs.at("wte.weight")).sizes;
  return std::make_unique<nn::Gpt2>(
      nn::Gpt2Options{.vocabulary = tokens[0],
                      .context = file.values(c.inputs.at("wpe.weight")).sizes[0],
                      .width = tokens[1],
                      .layers = c.attrs.at("layers"),
                      .heads = c.attrs.at("heads"),
                      .dropout = 0,
                      .eps = c.attrs.at("ln_eps")});
}

std::unique_ptr<nn::Module> make_model(const CaseFile& file, const Case& c, DType dtype) {
  const auto sizes = [&](const std::string& name) { return file.values(c.inputs.at(name)).sizes; };
  std::unique_ptr<nn::Module> model;
  if (c.op == "model_mlp") {
    const Dims first = sizes("fc1.weight"), last = sizes("fc3.weight");
    model = std::make_unique<nn::MLP>(nn::MLPOptions{
        .in = first[1], .hidden = {first[0], sizes("fc2.weight")[0]}, .classes = last[0]});
  } else if (c.op == "model_convnet") {
    const Dims first = sizes("conv1.weight");
    model = std::make_unique<ConvNet>(ConvNet::Options{first[1], first[0], sizes("fc.weight")[0],
                                                       c.attrs.at("bn_eps"),
                                                       c.attrs.at("bn_momentum")});
  } else if (c.op == "model_resnet") {
    model = make_resnet(file, c);
  } else if (c.op == "model_gpt2") {
    model = make_gpt2(file, c);
  } else {
    model = make_sequence_model(file, c);
  }
  const Device device = kernels::test_device();
  model->to(device, is_half(dtype) ? Precision::mixed(dtype) : Precision::full());
  if (!is_half(dtype)) {
    model->to(dtype);
  }
  NamedTensors state;
  for (const auto& [name, tensor] : model->state()) {
    const auto input = c.inputs.find(name);
    state.emplace_back(
        name, input == c.inputs.end() ? tensor : file.tensor(input->second, compute_dtype(dtype)));
  }
  if (auto* gpt2 = dynamic_cast<nn::Gpt2*>(model.get())) {
    gpt2->load_published(state);
  } else {
    model->load_state(state);
  }
  return model;
}

std::unique_ptr<optim::Optimizer> optimizer_for(const Case& c, nn::Module& model) {
  const Json& hyper = c.attrs.at("optimizer");
  return make_optimizer(hyper.at("op"), hyper, optim::single_group(model.parameters()));
}

// The mean cross entropy over all positions.
Tensor loss_of(const Tensor& logits, const Tensor& y) {
  return nn::cross_entropy(flatten(logits, 0, -2), flatten(y));
}

Array losses_of(const CaseFile& file, const Case& c, const Tensor& x, const Tensor& y,
                DType dtype) {
  const auto model = make_model(file, c, dtype);
  const auto optimizer = optimizer_for(c, *model);
  const int64_t steps = c.attrs.at("steps");
  std::optional<double> clip;
  if (!c.attrs.at("clip").is_null()) {
    clip = number(c.attrs.at("clip"));
  }
  Array losses{{steps + 1}, {}};
  for (int64_t k = 0; k <= steps; ++k) {
    const Tensor loss = loss_of((*model)(x), y);
    losses.values.push_back(loss.item());
    loss.backward();
    check(optimizer->step({.clip_norm = clip}) == optim::StepOutcome::applied, "step ", k,
          " was not applied");
  }
  return losses;
}

// How far PyTorch's own f32 is from the expected values, where that is more than the tolerance of
// rounding: null for other dtypes and for cases that do not say it.
const Json* f32_deviation(const Case& c, DType dtype) {
  const auto found = c.attrs.find("f32_deviation");
  return dtype == DType::f32 && found != c.attrs.end() ? &*found : nullptr;
}
constexpr double kDeviations = 4;  // so many times as far may ours be

double root_mean_square(const Array& x) {
  double squares = 0;
  for (const double value : x.values) {
    squares += value * value;
  }
  return std::sqrt(squares / double(std::max(x.values.size(), size_t{1})));
}

// Names of weights in the order of their gradients: those that the case lists.
void check_gradients(const CaseFile& file, const Case& c, nn::Module& model, double c_units,
                     DType dtype, Checker& checker) {
  for (const Parameter& parameter : model.parameters()) {
    Tensor gradient = parameter.value.grad();
    if (!gradient.defined()) {
      checker.fail("no gradient of " + parameter.name);
      return;
    }
    if (c.op == "model_gpt2") {
      gradient = nn::Gpt2::swap_layout({{parameter.name, gradient}})[0].second;
    }
    const std::string name = "gradient of " + parameter.name;
    const Array want = file.values(c.grads.at(parameter.name));
    // A rounded activation may fall on the other side of relu's kink, which changes single
    // gradients by any amount: in half precision, and in f32 in deep networks.
    if (is_half(dtype)) {
      checker.expect_on_the_whole(name, cast(gradient, dtype), want, c_units);
    } else if (const Json* deviation = f32_deviation(c, dtype)) {
      const double ratio = kDeviations * number(deviation->at("gradients"));
      checker.expect_on_the_whole(name, gradient, want, c_units, ratio * root_mean_square(want));
    } else {
      checker.expect(name, gradient, want, c_units);
    }
  }
}

}  // namespace

std::string run_model_case(const CaseFile& file, const Case& c, DType dtype) {
  const auto model = make_model(file, c, dtype);
  const Tensor x = file.tensor(c.inputs.at("x"), dtype), y = file.tensor(c.inputs.at("y"), dtype);
  const Tensor logits = (*model)(x);
  const Tensor loss = loss_of(logits, y);
  loss.backward();
  Checker checker(c.len);
  const double units = is_half(dtype) ? 64 : 8;
  checker.expect("logits", logits.detach(), file.values(c.outputs.at("logits")), units);
  const auto narrow = [&](const Tensor& t) {
    return is_half(dtype) ? cast(t.detach(), dtype) : t.detach();
  };
  checker.expect("loss", narrow(loss), file.values(c.outputs.at("loss")), units);
  check_gradients(file, c, *model, units, dtype, checker);
  for (const auto& [name, tensor] : model->named_buffers()) {
    checker.expect(name, narrow(tensor), file.values(c.outputs.at(name)), units);
  }
  const Array losses = losses_of(file, c, x, y, dtype);
  double relative = is_half(dtype) ? 0.05 : dtype == DType::f32 ? 1e-5 : 1e-10;
  if (const Json* deviation = f32_deviation(c, dtype)) {
    relative = std::max(relative, kDeviations * number(deviation->at("losses")));
  }
  checker.expect_relative("losses", losses, file.values(c.outputs.at("losses")), relative);
  return checker.failure();
}

}  // namespace binade::parity
