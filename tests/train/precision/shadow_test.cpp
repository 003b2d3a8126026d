// Compares the shadow's errors with one op at a time in f64, and its error budget with the
// difference of the losses.
#include <binade/binade.h>
#include <binade/core/observe/label.h>
#include <binade/core/observe/warning.h>
#include <binade/train/model_file.h>
#include <binade/train/precision/shadow_report.h>
#include <gtest/gtest.h>
#include <tests/support/temporary_directory.h>

#include <cmath>
#include <map>

namespace binade::train::shadow_test {
namespace {

constexpr int64_t kInput = 19, kHidden = 33, kClasses = 7, kSamples = 13;

struct ShadowNet : nn::Module {
  nn::Linear fc1{*this, "fc1", {.in = kInput, .out = kHidden}};
  nn::LayerNorm norm{*this, "norm", {.normalized_shape = {kHidden}}};
  nn::Linear fc2{*this, "fc2", {.in = kHidden, .out = kClasses}};
  Tensor forward(const Tensor& x) override {
    const Tensor h = norm(tanh(fc1(x)));
    return fc2(h * sigmoid(h));
  }
};

struct ShadowConvNet : nn::Module {
  nn::Conv2d conv{*this, "conv", {.in = 3, .out = 6, .kernel = 3, .padding = 1}};
  nn::BatchNorm2d bn{*this, "bn", {.channels = 6}};
  nn::Conv2d conv2{*this, "conv2", {.in = 6, .out = 5, .kernel = 3}};
  nn::Linear fc{*this, "fc", {.in = 5, .out = kClasses}};
  Tensor forward(const Tensor& x) override {
    const Tensor h = max_pool2d(relu(bn(conv(x))), {.kernel = {2, 2}});
    return fc(mean(dropout(relu(conv2(h)), 0.2), {2, 3}));
  }
};

data::Batch batch_of(const Tensor& images) {
  data::Batch batch;
  batch.set("images", images);
  batch.set("labels", randint(0, kClasses, {images.size(0)}));
  batch.size = images.size(0);
  return batch;
}

StepToDiagnose step_on(nn::Module& model, const TrainingStep& step, const data::Batch& batch,
                       double scale) {
  return {.model = model,
          .step = step,
          .parameters = model.parameters(),
          .batches = {{batch, 1, generator()}},
          .scale = scale};
}

const ShadowRow& row_of(const ShadowStep& step, const std::string& module, const std::string& op) {
  for (const ShadowRow& row : step.rows) {
    if (row.module == module && row.op == op) {
      return row;
    }
  }
  throw Error("no row for " + module + "/" + op);
}

// Records the results of a step's ops, their gradients, and the gradients of their inputs, in f64.
class Noted : public OpObserver {
 public:
  explicit Noted(double scale) : scale_(scale) {}
  void result(const OpEvent& event) override {
    held.insert(held.end(), event.outputs.begin(), event.outputs.end());
    if (!event.in_backward && event.op.op_class != OpClass::movement) {
      const std::string name = label_text(event.module) + "/" + event.op.name;
      names[event.outputs[0].handle().get()] = name;
      values[name] = event.outputs[0].to(DType::f64);
    }
  }
  void upstream(const GradientEvent& event) override {
    if (names.contains(event.node.output) && !event.node.leaf) {
      upstreams[names[event.node.output]] = event.upstream.to(DType::f64) * (1 / scale_);
    }
  }
  void gradients(const GradientEvent& event) override {
    if (names.contains(event.node.output) && (*event.gradients)[0].defined()) {
      downstreams[names[event.node.output]] = (*event.gradients)[0].to(DType::f64) * (1 / scale_);
    }
  }
  std::map<std::string, Tensor> values, upstreams, downstreams;

 private:
  double scale_;
  std::map<const TensorData*, std::string> names;
  std::vector<Tensor> held;
};

double norm_of(const Tensor& t) { return std::sqrt(sum(square(t)).item()); }

void expect_within(double found, const Tensor& low, const Tensor& exact, const std::string& what) {
  const double expected = norm_of(low - exact) / norm_of(exact);
  if (expected < 1e-12) {  // f32 represents these values exactly
    EXPECT_LT(found, 1e-11) << what;
    return;
  }
  EXPECT_NEAR(found, expected, 0.01 * expected) << what;
}

const Precision kShadowPolicies[] = {
    Precision::full(),
    Precision::mixed(DType::f16),
    Precision::mixed(DType::bf16),
    Precision::autocast(DType::f16),
    Precision::autocast(DType::bf16).with(Store::paper),
    Precision::half(DType::f16),
    Precision::mixed(DType::f16).with({{.module = "fc1", .dtype = DType::f32}})};

// Runs each op by itself in f64 on the stored results of the ops before it.
TEST(Shadow, IntroducedErrorsAreThoseOfOneOpInF64) {
  for (const Precision& precision : kShadowPolicies) {
    SCOPED_TRACE(to_string(precision));
    manual_seed(5);
    ShadowNet net;
    net.to(Device{}, precision);
    const data::Batch batch = batch_of(randn({kSamples, kInput}) * 1.5);
    const double scale = 512;
    const TrainingStep training(classification_step);
    const StepToDiagnose step = step_on(net, training, batch, scale);
    const ShadowStep found = shadow(step);

    Noted low(scale);
    {
      const ObserverScope scope(low);
      const Tensor loss = classification_step(net, batch).loss;
      backward(loss, full(loss.sizes(), scale, loss.dtype()), {.scale = scale});
    }
    const NoGradGuard guard;
    const auto wide = [](const Tensor& t) { return t.detach().to(DType::f64); };
    const auto& v = low.values;
    const auto forward = [&](const std::string& module, const std::string& op,
                             const Tensor& exact) {
      const std::string name = module + "/" + op;
      expect_within(row_of(found, module, op).forward.introduced, v.at(name), exact, name);
    };
    forward("fc1", "linear", linear(wide(batch.images), wide(net.fc1.weight), wide(net.fc1.bias)));
    forward("", "tanh", tanh(v.at("fc1/linear")));
    forward("norm", "layer_norm",
            layer_norm(v.at("/tanh"), {kHidden}, wide(net.norm.weight), wide(net.norm.bias)));
    forward("", "sigmoid", sigmoid(v.at("norm/layer_norm")));
    forward("", "mul", v.at("norm/layer_norm") * v.at("/sigmoid"));
    forward("fc2", "linear", linear(v.at("/mul"), wide(net.fc2.weight), wide(net.fc2.bias)));
    forward("", "cross_entropy", cross_entropy(v.at("fc2/linear"), batch.labels));

    const auto backward_of = [&](const std::string& module, const std::string& op,
                                 const Tensor& exact) {
      const std::string name = module + "/" + op;
      expect_within(row_of(found, module, op).backward.introduced, low.downstreams.at(name), exact,
                    "backward of " + name);
    };
    const Tensor &dtanh = low.upstreams.at("/tanh"), &y = v.at("/tanh");
    backward_of("", "tanh", dtanh * (1 - y * y));
    const Tensor &dsigmoid = low.upstreams.at("/sigmoid"), &s = v.at("/sigmoid");
    backward_of("", "sigmoid", dsigmoid * s * (1 - s));
  }
}

// An op that rounds once has the errors of the format: at most half a unit, and no bias.
TEST(Shadow, UlpAndBiasOfOneRounding) {
  manual_seed(6);
  ShadowNet net;
  net.to(Device{}, Precision::mixed(DType::f16));
  const data::Batch batch = batch_of(randn({101, kInput}));
  const ShadowStep found = shadow(step_on(net, classification_step, batch, 1024));
  const ShadowErrors& mul = row_of(found, "", "mul").forward;
  EXPECT_EQ(mul.elements, 101 * kHidden);
  EXPECT_LE(mul.worst_ulp, 0.5 + 1e-9);
  EXPECT_NEAR(mul.ulp, 0.25, 0.02);
  EXPECT_LT(std::abs(mul.bias), 0.1);
  EXPECT_GT(mul.cosine, 0.99999);
  EXPECT_GT(mul.amplification, 0.1);
  EXPECT_EQ(mul.not_finite, 0);
}

// The gradients of a part of a batch have the scale and the part's weight in them.
TEST(Shadow, WeightOfAPartIsAScale) {
  std::vector<ShadowErrors> gradients;
  for (const double weight : {1.0, 1.0 / 4096}) {
    manual_seed(5);
    ShadowNet net;
    net.to(Device{}, Precision::mixed(DType::f16));
    const data::Batch batch = batch_of(randn({kSamples, kInput}));
    const TrainingStep training(classification_step);
    StepToDiagnose step = step_on(net, training, batch, 1024 / weight);
    step.batches[0].weight = weight;
    gradients.push_back(row_of(shadow(step), "fc1", "linear").backward);
  }
  EXPECT_EQ(gradients[0].introduced, gradients[1].introduced);
  EXPECT_EQ(gradients[0].total, gradients[1].total);
}

TEST(Shadow, BudgetIsTheDifferenceOfTheLosses) {
  int resolved = 0, by_two_points = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    for (const Precision& precision : kShadowPolicies) {
      for (const bool convolutions : {false, true}) {
        SCOPED_TRACE(text(to_string(precision), ", seed ", seed, ", ", convolutions));
        if (convolutions && precision.rules) {
          continue;  // belongs to the other model
        }
        manual_seed(seed);
        std::unique_ptr<nn::Module> net;
        if (convolutions) {
          net = std::make_unique<ShadowConvNet>();
        } else {
          net = std::make_unique<ShadowNet>();
        }
        net->to(Device{}, precision);
        const data::Batch batch =
            batch_of(convolutions ? randn({9, 3, 11, 11}) : randn({kSamples, kInput}));
        const ShadowStep found = shadow(step_on(*net, classification_step, batch, 256));
        EXPECT_EQ(found.text, "");
        double budgets = 0;
        for (const ShadowModule& module : modules_of(found)) {
          budgets += module.budget;
        }
        EXPECT_NEAR(budgets, found.explained, 1e-9 * std::abs(found.explained) + 1e-18);
        if (found.resolved()) {
          ++resolved;
          by_two_points += found.points == 2;
          EXPECT_LE(found.residual(), 0.1) << to_text(found);
        }
      }
    }
  }
  EXPECT_GE(resolved, 40);
  EXPECT_GE(by_two_points, 20) << "of " << resolved;
}

// A cast of the loss itself belongs to no op; what it rounds off has a row of its own.
TEST(Shadow, CastOfTheLossHasARow) {
  manual_seed(5);
  ShadowNet net;
  net.to(Device{}, Precision::mixed(DType::f16));
  const data::Batch batch = batch_of(randn({kSamples, kInput}));
  Tensor before;
  const TrainingStep step = [&before](ShadowNet& model, const data::Batch& b) {
    const Tensor y = model(b["images"]);
    before = cross_entropy(y.to(DType::f32), b["labels"]);
    return before.to(y.dtype());  // rounds to f16, but not in the runs in f64
  };
  const double rounded = step(net, batch).loss.item(), exact = before.item();
  ASSERT_NE(rounded, exact);
  const ShadowStep found = shadow(step_on(net, step, batch, 256));
  EXPECT_EQ(found.loss, rounded);
  EXPECT_NEAR(row_of(found, "", "cast").budget, rounded - exact, 1e-12);
  EXPECT_LE(found.residual(), 0.1) << to_text(found);
}

TEST(Shadow, ModelInF64IsNotResolved) {
  manual_seed(3);
  ShadowNet net;
  net.to(DType::f64);
  data::Batch batch = batch_of(randn({kSamples, kInput}).to(DType::f64));
  const ShadowStep found = shadow(step_on(net, classification_step, batch, 1));
  EXPECT_FALSE(found.resolved());
  EXPECT_TRUE(std::isnan(found.residual()));
  EXPECT_GT(found.noise, 0);
  EXPECT_NE(to_text(found).find("not resolved"), std::string::npos);
}

// An op overflows: values that are not finite are counted, and the budget is reported as unknown.
TEST(Shadow, NotFinite) {
  manual_seed(3);
  ShadowNet net;
  net.to(Device{}, Precision::mixed(DType::f16));
  const data::Batch batch = batch_of(randn({kSamples, kInput}));
  const TrainingStep step = [](ShadowNet& model, const data::Batch& b) {
    const Tensor h = model.fc1(b["images"]);
    return mean(square(square(h * 300.0)));
  };
  const ShadowStep found = shadow(step_on(net, step, batch, 1));
  EXPECT_FALSE(found.resolved());
  EXPECT_NE(found.text.find("not finite"), std::string::npos);
  EXPECT_GT(row_of(found, "", "square").forward.not_finite, 0);
  EXPECT_EQ(row_of(found, "fc1", "linear").forward.not_finite, 0);
}

TEST(Shadow, StepThatChoosesByDtypeHasNone) {
  manual_seed(3);
  ShadowNet net;
  net.to(Device{}, Precision::mixed(DType::f16));
  const data::Batch batch = batch_of(randn({kSamples, kInput}));
  const TrainingStep step = [](ShadowNet& model, const data::Batch& b) {
    const Tensor h = model.fc1(b["images"]);
    return mean(h.dtype() == DType::f64 ? relu(h) : tanh(h));
  };
  try {
    shadow(step_on(net, step, batch, 1));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what())
                  .find("got relu as op 1 of the f64 run, where the step has "
                        "tanh"),
              std::string::npos)
        << error.what();
  }
  // A training loop gets a line of output and a warning instead.
  std::vector<std::string> warnings;
  const auto before =
      set_warning_handler([&](const std::string& text) { warnings.push_back(text); });
  Shadow watch({.every = 2});
  watch.look(0, step_on(net, step, batch, 1));
  watch.look(2, step_on(net, step, batch, 1));
  set_warning_handler(before);
  EXPECT_EQ(warnings.size(), 1u);
  EXPECT_NE(watch.last().text.find("got relu"), std::string::npos);
  EXPECT_EQ(net.fc1.weight.dtype(), DType::f16);  // the model is unchanged
}

std::string hash_after_training(const std::string& directory, int64_t shadow, Device device) {
  manual_seed(11);
  data::TensorDataset rows({{"images", randn({60, 3, 8, 8})}, {"labels", randint(0, 7, {60})}});
  data::Loader loader(rows, {.batch = 12, .workers = 0, .seed = 4});
  ShadowConvNet net;
  net.to(device, Precision::mixed(DType::f16));
  optim::AdamW adam(net.parameters(), {.lr = 1e-3});
  optim::LossScaler scaler({.init_scale = 1024});
  Trainer trainer({.model = net, .optimizer = adam, .scaler = &scaler},
                  {.epochs = 2, .run = directory, .progress = false, .shadow = shadow});
  trainer.fit(loader);
  return state_hash(net.exact_state());
}

TEST(Shadow, RunIsTheSameWithAndWithout) {
  const testing::TemporaryDirectory directory;
  std::vector<Device> devices{Device{}};
  try {
    devices.push_back(Device::parse("emulated"));
    zeros({1}, DType::f32, devices.back());
  } catch (const Error&) {  // a build without the device
    devices.resize(1);
  }
  for (size_t i = 0; i < devices.size(); ++i) {
    const std::string with = directory / text("with", i), without = directory / text("without", i);
    EXPECT_EQ(hash_after_training(with, 3, devices[i]),
              hash_after_training(without, 0, devices[i]));
    const std::vector<ShadowStep> steps = read_shadow(with + "/shadow.jsonl");
    ASSERT_EQ(steps.size(), 4u);  // steps 0, 3, 6, 9 of ten
    for (const ShadowStep& step : steps) {
      EXPECT_EQ(step.text, "");
      EXPECT_EQ(step.scale, 1024);
      EXPECT_TRUE(step.resolved());
      EXPECT_LE(step.residual(), 0.1) << to_text(step);
      ASSERT_FALSE(step.weights.empty());
      for (const ShadowWeight& weight : step.weights) {
        if (weight.name != "conv.bias") {  // its gradient is noise: batch norm removes it
          EXPECT_GT(weight.gradient_cosine, 0.9) << weight.name;
        }
      }
    }
    const std::vector<std::byte> page = read_file(with + "/shadow.html", 1 << 24);
    EXPECT_GT(page.size(), 1000u);
  }
}

TEST(Shadow, OtherObserversDoNotSeeIt) {
  manual_seed(3);
  ShadowNet net;
  net.to(Device{}, Precision::mixed(DType::f16));
  const data::Batch batch = batch_of(randn({kSamples, kInput}));
  Noted noted(1);
  const ObserverScope scope(noted);
  (void)shadow(step_on(net, classification_step, batch, 1));
  EXPECT_TRUE(noted.values.empty());
  (void)net(batch.images);
  EXPECT_FALSE(noted.values.empty());
}

TEST(Shadow, LinesComeBackAsTheyWere) {
  manual_seed(3);
  ShadowNet net;
  net.to(Device{}, Precision::autocast(DType::bf16));
  const data::Batch batch = batch_of(randn({kSamples, kInput}));
  const ShadowStep found = shadow(step_on(net, classification_step, batch, 1));
  const testing::TemporaryDirectory directory;
  const std::string file = directory / "shadow.jsonl";
  write_file_durably(file, to_json(found) + "\n" + to_json(found) + "\n{\"cut");
  const std::vector<ShadowStep> again = read_shadow(file);
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(to_json(again[1]), to_json(found));
  write_file_durably(file, "{\"step\":1}\n");
  EXPECT_THROW(read_shadow(file), Error);
  write_file_durably(file, "");
  EXPECT_THROW(read_shadow(file), Error);
}

}  // namespace
}  // namespace binade::train::shadow_test
