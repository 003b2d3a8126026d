// The models of step_bench and their batches.
#include <bench/drawn_batch.h>
#include <bench/peers/models.h>
#include <bench/step_work.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/gpt2.h>
#include <binade/nn/models.h>
#include <binade/optim/adamw.h>
#include <binade/optim/loss_scaler.h>
#include <binade/optim/sgd.h>
#include <binade/train/graphed_step.h>

#include <algorithm>

namespace binade::bench {
namespace {

int64_t chosen(int64_t given, int64_t own) { return given > 0 ? given : own; }

void refuse(bool given, const char* flag, const std::string& model) {
  check(!given, "--", flag, ": has no effect on --model ", model);
}

bool is_resnet(const std::string& model) { return model.starts_with("resnet"); }

// Fills in the model's own numbers where settings are 0.
StepSettings complete(StepSettings s) {
  const bool text = is_text_model(s.model);
  refuse(text && (s.image || s.channels || s.classes), "image, --channels and --classes", s.model);
  refuse(!text && (s.tokens || s.layers || s.heads || s.vocabulary),
         "tokens, --layers, --heads and --vocabulary", s.model);
  refuse(!is_resnet(s.model) && !s.blocks.empty(), "blocks", s.model);
  refuse(!text && !is_resnet(s.model) && s.width, "width", s.model);
  refuse((!text || s.model == "char_gpt") && s.dropout > 0, "dropout", s.model);
  check(s.optimizer == "adamw" || s.optimizer == "sgd", "--optimizer: got '", s.optimizer,
        "', expected adamw or sgd");
  s.batch = chosen(s.batch, text ? 4 : 32);
  if (text) {
    const bool characters = s.model == "char_gpt";
    const peers::CharGPTOptions small;
    const nn::Gpt2Options own = characters ? nn::Gpt2Options{.vocabulary = small.vocabulary,
                                                             .context = small.context,
                                                             .width = small.embed,
                                                             .layers = small.layers,
                                                             .heads = small.heads}
                                           : nn::gpt2_options(s.model);
    s.tokens = chosen(s.tokens, own.context);
    s.layers = chosen(s.layers, own.layers);
    s.width = chosen(s.width, own.width);
    s.heads = chosen(s.heads, own.heads);
    s.vocabulary = chosen(s.vocabulary, own.vocabulary);
    return s;
  }
  s.image = chosen(s.image, is_resnet(s.model) ? 224 : 28);
  s.channels = chosen(s.channels, is_resnet(s.model) ? 3 : 1);
  s.classes = chosen(s.classes, is_resnet(s.model) ? 1000 : 10);
  s.width = chosen(s.width, 64);
  return s;
}

int64_t depth_of(const std::string& model) {
  for (const int64_t depth : {18, 34, 50, 101, 152}) {
    if (model == text("resnet", depth)) {
      return depth;
    }
  }
  fail("--model: got '", model, "', expected ", kStepModels);
}

std::unique_ptr<nn::Module> make_model(const StepSettings& s) {
  if (s.model == "char_gpt") {
    return std::make_unique<peers::CharGPT>(peers::CharGPTOptions{.layers = s.layers,
                                                                  .embed = s.width,
                                                                  .heads = s.heads,
                                                                  .context = s.tokens,
                                                                  .vocabulary = s.vocabulary});
  }
  if (is_text_model(s.model)) {
    return std::make_unique<nn::Gpt2>(nn::Gpt2Options{.vocabulary = s.vocabulary,
                                                      .context = std::max<int64_t>(s.tokens, 1024),
                                                      .width = s.width,
                                                      .layers = s.layers,
                                                      .heads = s.heads,
                                                      .dropout = s.dropout});
  }
  if (s.model == "cnn" || s.model == "mlp") {
    return nn::make_model(s.model, {s.channels, s.image, s.image, s.classes});
  }
  return std::make_unique<nn::ResNet>(nn::ResNetOptions{.depth = depth_of(s.model),
                                                        .classes = s.classes,
                                                        .channels = s.channels,
                                                        .small_images = s.image < 64,
                                                        .blocks = s.blocks,
                                                        .width = s.width});
}

DrawnBatch noise(const StepSettings& s) {
  if (is_text_model(s.model)) {
    Tensor inputs = randint(s.vocabulary, {s.batch, s.tokens});
    return {std::move(inputs), randint(s.vocabulary, {s.batch * s.tokens})};
  }
  Tensor inputs = randn({s.batch, s.channels, s.image, s.image});
  return {std::move(inputs), randint(s.classes, {s.batch})};
}

std::unique_ptr<optim::Optimizer> make_optimizer(const StepSettings& s, nn::Module& model) {
  if (s.optimizer == "sgd") {
    return std::make_unique<optim::SGD>(
        model.parameters(), optim::SGDOptions{.lr = s.lr, .momentum = 0.9, .weight_decay = 1e-4});
  }
  return std::make_unique<optim::AdamW>(model.parameters(), optim::AdamWOptions{.lr = s.lr});
}

}  // namespace

bool is_text_model(const std::string& model) {
  return model.starts_with("gpt2") || model == "char_gpt";
}

struct StepWork::State {
  explicit State(const StepSettings& given) : settings(complete(given)) {
    manual_seed(0);
    const StepSettings& s = settings;
    model = make_model(s);
    if (s.batches > 0 &&
        (is_resnet(s.model) || (is_text_model(s.model) && s.model != "char_gpt"))) {
      draw_weights(*model, s.layers);
    }
    model->to(s.device, s.precision);
    const bool is_text = is_text_model(s.model);
    for (int64_t i = 0; i < std::max<int64_t>(1, s.batches); ++i) {
      DrawnBatch drawn = s.batches == 0 ? noise(s)
                         : is_text      ? drawn_text({s.batch, s.tokens, s.vocabulary}, i)
                                   : drawn_images({s.batch, s.channels, s.image, s.classes}, i);
      drawn.inputs = is_text ? drawn.inputs : channels_last(drawn.inputs);
      batches.push_back({drawn.inputs.to(s.device), drawn.labels.to(s.device)});
    }
    if (s.forward) {
      model->eval();
      return;
    }
    optimizer = make_optimizer(s, *model);
    scaler.to(s.device);
    if (s.graph) {
      graphed = std::make_unique<train::GraphedStep>(
          s.device, [this](std::span<const Tensor> in) -> std::vector<Tensor> {
            return {train(in[0], in[1])};
          });
    }
  }

  Tensor loss_of(const Tensor& x, const Tensor& y) const {
    const Tensor logits = (*model)(x);
    return cross_entropy(logits.dim() == 2 ? logits : flatten(logits, 0, 1), y);
  }
  Tensor train(const Tensor& x, const Tensor& y) {
    const Tensor loss = loss_of(x, y);
    scaler.scale(loss).backward();
    (void)scaler.step(*optimizer);
    return loss.detach();
  }

  StepSettings settings;
  std::unique_ptr<nn::Module> model;
  std::unique_ptr<optim::Optimizer> optimizer;
  optim::LossScaler scaler;
  std::unique_ptr<train::GraphedStep> graphed;
  std::vector<DrawnBatch> batches;
  size_t next = 0;  // index of the next batch
};

StepWork::StepWork(const StepSettings& settings) : state_(std::make_unique<State>(settings)) {}
StepWork::~StepWork() = default;

Tensor StepWork::step() {
  const auto& [inputs, labels] = state_->batches[state_->next];
  state_->next = (state_->next + 1) % state_->batches.size();
  if (state_->settings.forward) {
    const NoGradGuard guard;
    return state_->loss_of(inputs, labels);
  }
  if (state_->graphed) {
    return (*state_->graphed)({inputs, labels})[0];
  }
  return state_->train(inputs, labels);
}

int64_t StepWork::batch() const { return state_->settings.batch; }
int64_t StepWork::length() const {
  return is_text_model(state_->settings.model) ? state_->settings.tokens : state_->settings.image;
}
int64_t StepWork::parameter_count() const { return state_->model->parameter_count(); }
int64_t StepWork::skipped_steps() const {
  return state_->settings.forward ? 0 : state_->scaler.skipped_steps();
}
int64_t StepWork::replays() const { return state_->graphed ? state_->graphed->replays() : 0; }

}  // namespace binade::bench
