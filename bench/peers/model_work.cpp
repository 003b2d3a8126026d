// Work with a model: inference and generation of text, and how a row names its work.
#include <bench/peers/model_work.h>
#include <bench/peers/training.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/train/model_file.h>

#include <charconv>
#include <cmath>

namespace binade::peers {
namespace {

// The same few samples repeat. With this learning rate the model does not learn them during timing;
// otherwise gradients would become subnormal, which is slower.
constexpr double kTimedRate = 1e-5;

// The root mean square and 16 equally spaced elements.
std::vector<double> summary(const Tensor& x) {
  constexpr int64_t kElements = 16;
  const Tensor row = reshape(x, {-1});
  std::vector<double> values{std::sqrt(mean(row * row).item())};
  for (int64_t i = 0; i < kElements; ++i) {
    values.push_back(select(row, 0, i * row.numel() / kElements).item());
  }
  return values;
}

// Runs the forward of one batch in evaluation mode.
class Inference : public ModelWork {
 public:
  explicit Inference(const ModelRow& row, int64_t units = 1) : ModelWork(units) {
    check(row.model->phases.size() == 1, "peer_work: got inference of ", row.model->name,
          ", expected a model of one part");
    manual_seed(0);
    model_ = row.model->make();
    model_->eval();
    model_->parameters();  // collects the parameters in one arena, as training does
    input_ = row.model->random_batch(row.batch).input;
  }
  void call() override { forward(); }
  std::vector<double> values() override { return summary(forward()); }
  NamedTensors start() const override {
    NamedTensors all = model_->state();
    all.emplace_back("input.0", input_);
    return all;
  }

 protected:
  Tensor forward() {
    NoGradGuard no_grad;
    return (*model_)(input_);
  }

  std::unique_ptr<nn::Module> model_;
  Tensor input_;
};

// Generates greedily without a cache: each new token costs a forward of the whole context, from
// which the oldest token is dropped. Units are tokens per text.
class Generation : public Inference {
 public:
  explicit Generation(const ModelRow& row) : Inference(row, kTokens), classes_(row.model->classes) {
    check(input_.dtype() == DType::i64, "peer_work: got generation by ", row.model->name,
          ", expected a model of text");
  }
  void call() override {
    for (int64_t i = 0; i < kTokens; ++i) {
      append_token();
    }
  }
  std::vector<double> values() override { return summary(last_logits()); }

 private:
  static constexpr int64_t kTokens = 8;

  Tensor last_logits() {
    const Tensor logits = reshape(forward(), {input_.size(0), input_.size(1), classes_});
    return select(logits, 1, -1);
  }
  void append_token() {
    NoGradGuard no_grad;
    const Tensor next = argmax(last_logits(), 1, true);
    input_ = cat({narrow(input_, 1, 1, input_.size(1) - 1), next}, 1);
  }

  int64_t classes_;
};

std::vector<std::string> fields_of(const std::string& spec) {
  std::vector<std::string> fields(1);
  for (char c : spec) {
    if (c == ':') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

}  // namespace

bool is_model_row(const std::string& spec) { return spec.find(':') != std::string::npos; }

ModelRow parse_model_row(const std::string& spec) {
  const std::vector<std::string> fields = fields_of(spec);
  int64_t batch = 0;
  if (fields.size() == 4) {
    const char* end = fields[2].data() + fields[2].size();
    const auto [stop, error] = std::from_chars(fields[2].data(), end, batch);
    batch = stop == end && error == std::errc() ? batch : 0;
  }
  check(batch >= 1, "peer_work: got work '", spec, "', expected STEP:MODEL:BATCH:RULE");
  return {.step = fields[0], .model = &find_model(fields[1]), .batch = batch, .rule = fields[3]};
}

std::unique_ptr<ModelWork> make_model_work(const ModelRow& row) {
  if (row.step == "train") {
    return std::make_unique<Training>(TrainingOptions{.row = row, .lr = kTimedRate});
  }
  if (row.step == "infer") {
    return std::make_unique<Inference>(row);
  }
  check(row.step == "generate", "peer_work: got step '", row.step,
        "', expected train, infer or generate");
  return std::make_unique<Generation>(row);
}

std::vector<double> start_values(const std::string& spec, const std::string& file) {
  const std::unique_ptr<ModelWork> work = make_model_work(parse_model_row(spec));
  train::save_tensors(file, work->start());
  return work->values();
}

}  // namespace binade::peers
