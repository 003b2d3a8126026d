// Common mistakes of beginners with modules, gradients, training and files (mistakes.h).
#include <tests/support/temporary_directory.h>
#include <tests/train/mistakes.h>

#include <fstream>

namespace mistakes::model_mistakes_test {
namespace {

// One of its layers is a plain member that is not registered.
struct Forgetful : nn::Module {
  nn::Linear a{*this, "a", {.in = 4, .out = 4}};
  nn::Linear b{{.in = 4, .out = 2}};
  bool direct = false;
  Tensor forward(const Tensor& x) override { return direct ? b.forward(a(x)) : b(a(x)); }
};

Mistakes modules() {
  return {
      {"a layer that is not registered",
       [] {
         Forgetful()(randn({2, 4}));
       },
       "module:", "a binade::nn::Linear (weight [2, 4], bias [2]) runs in the forward of",
       "without being registered", "call register_module(name, member)"},
      {"the same by forward()",
       [] {
         Forgetful net;
         net.direct = true;
         net(randn({2, 4}));
       },
       "module:", "binade::nn::Linear (weight [2, 4], bias [2])", "without being registered",
       "call register_module(name, member)"},
      {"a name used twice",
       [] {
         Net net;
         nn::Linear second(net, "fc", {.in = 1, .out = 1});
       },
       "register:", "'fc'", "is used twice in one module", "one module"},
      {"a module in two models",
       [] {
         Net net, other;
         nn::Linear shared(net, "shared", {.in = 1, .out = 1});
         other.register_module("shared", shared);
       },
       "register_module:", "'shared' is part of a module already", "expected a module without",
       "tie its parameters"},
      {"no forward()",
       [] {
         struct Silent : nn::Module {};
         Silent()(randn({2}));
       },
       "module:", "got one tensor for a", "whose forward() takes other inputs", "override forward"},
      {"moved after the optimizer",
       [] {
         Net net;
         optim::SGD sgd(net.parameters(), {.lr = 0.1});
         net.to(Device{}, Precision::mixed(DType::f16));
       },
       "to:", "got a model whose parameters an optimizer holds", "expected none",
       "move the model before"},
      {"a layer added after the optimizer",
       [] {
         Net net;
         optim::SGD sgd(net.parameters(), {.lr = 0.1});
         nn::Linear late(net, "late", {.in = 1, .out = 1});
       },
       "register:", "got 'late' after an optimizer was made", "build the whole model first",
       "first"},
      {"f16 as a dtype of the model", [] { Net().to(DType::f16); }, "to:", "got f16",
       "expected f32 or f64", "choose a policy"},
      {"no parameters",
       [] {
         nn::ReLU function;
         optim::SGD sgd(function.parameters(), {.lr = 0.1});
       },
       "optimizer:", "got a group without parameters", "expected at least one",
       "are the layers registered?"},
      {"a path with a slip", [] { Net().freeze("fcc"); }, "freeze:", "'fcc'",
       "no parameter is named", "or lies below it"},
      {"eval() forgotten in a part",
       [] {
         struct Outer : nn::Module {
           nn::Linear fc{*this, "fc", {.in = 4, .out = 4}};
           nn::Dropout dropout{{.p = 0.5}};
           Tensor forward(const Tensor& x) override { return dropout.forward(fc(x)); }
         } net;
         net.eval();
         const binade::NoGradGuard guard;
         net(randn({2, 4}));
       },
       "module:", "a binade::nn::Dropout runs in the forward of", "stays in training mode",
       "call register_module(name, member)"},
      {"clone of another class",
       [] { nn::clone(Net(), [] { return std::make_unique<nn::ReLU>(); }); }, "clone:",
       "got module (root) of class binade::nn::ReLU", "expected module (root) of class", "make()"},
  };
}

Mistakes autograd() {
  return {
      {"backward of many", [] { Net()(images()).backward(); }, "backward:", "got shape [2, 2]",
       "expected one element", "mean() or sum()"},
      {"backward twice",
       [] {
         const Tensor loss = sum(square(leaf()));
         loss.backward();
         loss.backward();
       },
       "backward:", "the graph of sum was freed", "expected one that exists",
       "retain_graph = true"},
      {"second derivative of an op without one",
       [] {
         const Tensor w = leaf();
         sum(grad(sum(binade::cumprod(w, 0)), {w}, {.create_graph = true})[0]).backward();
       },
       "backward:", "double backward of cumprod is not implemented", "expected ops",
       "leave out create_graph"},
      {"no gradient wanted", [] { sum(randn({3})).backward(); },
       "backward:", "got a tensor of shape []", "nothing in this tensor's history wants a gradient",
       "call require_grad()"},
      {"under a guard",
       [] {
         const binade::NoGradGuard guard;
         sum(square(leaf())).backward();
       },
       "backward:", "it was computed under a NoGradGuard", "wants a gradient", "end the guard"},
      {"detached", [] { sum(square(leaf()).detach()).backward(); }, "backward:", "detach() cut it",
       "wants a gradient", "use the tensor itself"},
      {"frozen",
       [] {
         Net net;
         net.freeze();
         sum(net(images())).backward();
       },
       "backward:", "the parameters that it depends on are frozen", "wants a gradient",
       "call unfreeze()"},
      {"loss of integers", [] { sum(randint(3, {4})).backward(); }, "backward:", "got dtype i64",
       "expected a floating dtype", "others have no gradient"},
      {"loss of argmax", [] { mean(argmax(Net()(images()), 1).to(DType::f32)).backward(); },
       "backward:", "an op without a gradient made it", "wants a gradient",
       "(a comparison, a cast"},
      {"gradient of a result",
       [] {
         const Tensor y = leaf() * 2;
         sum(y).backward();
         y.grad();
       },
       "grad:", "got a tensor that is no leaf", "expected a leaf", "on_gradient()"},
      {"require_grad of a result", [] { (leaf() * 2).require_grad(); },
       "require_grad:", "got a tensor that an op computed", "call detach() first", "detach()"},
      {"a saved tensor changed",
       [] {
         const Tensor a = randn({3}), y = sum(leaf() * a);
         a.fill_(0);
         y.backward();
       },
       "mul:", "a tensor saved for backward was changed in place", "expected 1",
       "change it after backward"},
      {"a parameter changed without a guard",
       [] {
         Tensor w = leaf();
         w += 1;
       },
       "+=:", "got a tensor whose gradient is recorded", "change it under a NoGradGuard",
       "functional form"},
  };
}

// Runs a training step of a net; `how` does something with the loss and the optimizer.
using Step = std::function<void(Net&, const Tensor& loss, optim::Optimizer&)>;
std::function<void()> step(const Step& how) {
  return [how] {
    Net net;
    optim::SGD sgd(net.parameters(), {.lr = 0.1});
    how(net, sum(net(images())), sgd);
  };
}

// Trains a linear model for an epoch, or goes on with its run.
void fit_linear(int64_t classes, const train::TrainerOptions& options) {
  const Tensor x = randn({8, 4});
  const binade::data::TensorDataset rows({{"images", x}, {"labels", randint(0, 2, {8})}});
  binade::data::Loader loader(rows, {.batch = 4, .workers = 0}),
      validation(rows, {.batch = 4, .workers = 0});
  nn::Linear model({.in = 4, .out = classes});
  optim::SGD sgd(model.parameters(), {.lr = 0.1});
  train::Trainer({.model = model, .optimizer = sgd}, options).fit(loader, &validation);
}

// Counts its samples in a plain member.
struct Seen : train::Metric {
  Seen() : Metric("seen") {}
  void update(const train::StepOutput&, const binade::data::Batch& batch) override {
    seen += batch.size;
  }
  double value() const override { return static_cast<double>(seen); }
  int64_t seen = 0;
};

Mistakes runs() {
  return {
      {"a metric that collects in a plain member",
       [] { fit_linear(2, {.epochs = 1, .progress = false, .metrics = {Seen()}}); },
       "metric seen:", "got no MetricSum, MetricCount or MetricRows",
       "expected update() to collect in one", "neither reset"},
      {"resume with another model",
       [] {
         const binade::testing::TemporaryDirectory folder;
         fit_linear(2, {.epochs = 1, .run = folder / "run", .progress = false});
         fit_linear(3, {.epochs = 2, .run = folder / "run", .resume = true, .progress = false});
       },
       "load_state:", "weight has [2, 4]", "expected [3, 4]",
       "while loading the checkpoint of the run in"},
  };
}

Mistakes training() {
  return {
      {"step without backward", step([](Net&, const Tensor&, auto& sgd) { (void)sgd.step(); }),
       "step:", "no parameter has a gradient", "call backward before step", "call backward"},
      {"scaled loss, plain step", step([](Net&, const Tensor& loss, auto& sgd) {
         optim::LossScaler scaler;
         scaler.scale(loss).backward();
         (void)sgd.step();
       }),
       "step:", "got gradients with a loss scale", "expected a step of the scaler",
       "call scaler.step(optimizer)"},
      {"plain and scaled backward", step([](Net& net, const Tensor& loss, auto&) {
         optim::LossScaler scaler;
         loss.backward();
         scaler.scale(sum(net(images()))).backward();
       }),
       "backward:", "got a loss scale of 65536", "is held at scale 1", "step or zero_grad"},
      {"scaled loss of many", [] { optim::LossScaler().scale(leaf()).backward(); }, "loss scaler:",
       "got a loss of shape [3]", "expected one floating element", "mean() or sum()"},
      {"schedule before the step", step([](Net&, const Tensor& loss, auto& sgd) {
         optim::StepLR schedule(sgd, {.step_size = 1});
         schedule.advance(StepOutcome::applied);
         loss.backward();
         (void)sgd.step();
       }),
       "schedule:", "got advance() before the first step", "expected it after step()",
       "write schedule.advance(optimizer.step())"},
      {"tau above 1",
       [] {
         Net net, other;
         nn::soft_update(net, other, 2);
       },
       "soft_update:", "got tau = 2", "expected a number in [0, 1]", "[0, 1]"},
      {"momentum of an optimizer without it", step([](Net&, const Tensor&, auto& sgd) {
         optim::OneCycleLR(sgd, {.max_lr = 1, .total_steps = 10});
       }),
       "OneCycleLR:", "got an optimizer without momentum", "expected one with it",
       "cycle_momentum = false"},
      {"fields of other names",
       [] {
         train::classification_step(
             *std::make_unique<Net>(),
             {.size = 2, .fields = {{"x", images()}, {"y", labels({0, 1})}}});
       },
       "trainer:", "got a batch with the fields x, y", "expected images and labels",
       "TrainerOptions::step"},
      {"accuracy of one score",
       [] {
         nn::accuracy(randn({2, 1}), labels({0, 1}));
       },
       "accuracy:", "got logits [2, 1]", "expected at least two classes", "threshold = 0"},
      {"classes in a binary loss",
       [] {
         bce_with_logits(randn({2}), labels({0, 1}));
       },
       "bce_with_logits:", "got a target of dtype i64", "expected a floating dtype",
       "convert it with to(DType::f32)"},
      {"average with a decay above 1",
       [] {
         Net net;
         train::Ema ema(net, {.decay = 2});
       },
       "Ema:", "got decay = 2", "expected a number in [0, 1]", "[0, 1]"},
  };
}

Mistakes files() {
  return {
      {"state of another model", [] { Net().load_state(nn::Linear({.in = 2, .out = 2}).state()); },
       "load_state:", "4 missing: conv.weight, conv.bias, fc.weight, fc.bias; 2 unexpected",
       "expected the names and shapes that the target has", "nothing was changed"},
      {"transposed weight",
       [] { nn::Linear({.in = 2, .out = 3}).load_state(nn::Linear({.in = 3, .out = 2}).state()); },
       "load_state:", "weight has [2, 3]", "expected [3, 2]", "nothing was changed"},
      {"skip with a slip",
       [] {
         Net net;
         net.load_state(net.state(), {.skip = {"fcc"}});
       },
       "load_state:", "got skip 'fcc'", "matches no name of the model", "nothing was changed"},
      {"an undefined tensor in a file",
       [] {
         train::save_tensors("/nonexistent/x.safetensors", {{"x", Tensor()}});
       },
       "save:", "got the undefined tensor 'x'", "expected one with a value", "assign it first"},
      {"no such file",
       [] {
         Net net;
         train::load_model("/nonexistent/x.safetensors", net);
       },
       "/nonexistent/x.safetensors", "No such file", "cannot open the file", "while loading"},
      {"a file of torch.save()",
       [] {
         const binade::testing::TemporaryDirectory folder;
         std::ofstream(folder / "m.pt") << "PK\x03\x04 a zip archive of pickles";
         Net net;
         train::load_model(folder / "m.pt", net);
       },
       "m.pt: the header has", "bytes", "is it a safetensors file?",
       "safetensors.torch.save_file()"},
  };
}

TEST(ModelMistakes, NameTheOpWhatItGotWhatItExpectedAndWhatToDo) {
  EXPECT_GE(expect_messages({modules(), autograd(), training(), runs(), files()}), 35u);
}

}  // namespace
}  // namespace mistakes::model_mistakes_test
