#include <binade/core/tensor/create.h>
#include <binade/data/loader.h>
#include <binade/nn/format_histories.h>
#include <binade/nn/module.h>
#include <binade/optim/loss_scaler.h>
#include <binade/optim/plateau.h>
#include <binade/train/checkpoint/part_internal.h>
#include <binade/train/ema.h>

#include <algorithm>

namespace binade::train {
namespace {

using manifest::count;
using manifest::shortest;

class SavedModel : public PartObject {
 public:
  explicit SavedModel(nn::Module& model)
      : PartObject("model", &model, Order::model), model_(model) {}
  PartContent save() const override {
    return {.tensors = model_.exact_state(), .scales = nn::format_histories(model_)};
  }
  void load(const PartContent& content, const PartLoad&) override {
    const NamedTensors before = nn::format_histories(model_);
    nn::load_format_histories(model_, content.scales);
    try {
      model_.load_state(content.tensors);
    } catch (...) {
      nn::load_format_histories(model_, before);
      throw;
    }
  }
  const Arena* arena() const override { return model_.existing_arena(); }

 private:
  nn::Module& model_;
};

class SavedOptimizer : public PartObject {
 public:
  explicit SavedOptimizer(optim::Optimizer& optimizer)
      : PartObject("optimizer", &optimizer, Order::optimizer), optimizer_(optimizer) {}
  PartContent save() const override {
    PartContent content{.tensors = optimizer_.state_tensors()};
    manifest::add_scalars(content.fields, "", optimizer_.state_scalars());
    return content;
  }
  void load(const PartContent& content, const PartLoad&) override {
    optimizer_.load_state(content.tensors, manifest::scalars_of(content.fields, ""));
  }
  const Arena* arena() const override { return optimizer_.parameters().arena().get(); }
  const optim::Optimizer& optimizer() const { return optimizer_; }

 private:
  optim::Optimizer& optimizer_;
};

bool follows_optimizer(const auto& follower, const PartObject& part) {
  const auto* optimizer = dynamic_cast<const SavedOptimizer*>(&part);
  return optimizer && follower.follows(optimizer->optimizer());
}

// A LossScaler or a ReduceLROnPlateau: only scalars.
template <class T>
class SavedScalars : public PartObject {
 public:
  SavedScalars(const char* kind, T& object)
      : PartObject(kind, &object, Order::other), object_(object) {}
  PartContent save() const override {
    PartContent content;
    manifest::add_scalars(content.fields, "", object_.state_scalars());
    return content;
  }
  void load(const PartContent& content, const PartLoad&) override {
    object_.load_state(manifest::scalars_of(content.fields, ""));
  }
  bool follows(const PartObject& optimizer) const override {
    if constexpr (requires(const optim::Optimizer& any) { object_.follows(any); }) {
      return follows_optimizer(object_, optimizer);
    }
    return true;
  }

 private:
  T& object_;
};

class SavedSchedule : public PartObject {
 public:
  explicit SavedSchedule(optim::Schedule& schedule)
      : PartObject("schedule", &schedule, Order::schedule), schedule_(schedule) {}
  PartContent save() const override { return {.fields = {{"step", shortest(schedule_.step())}}}; }
  void load(const PartContent& content, const PartLoad&) override {
    schedule_.set_step(count(content.fields, "step"));
  }
  bool follows(const PartObject& optimizer) const override {
    return follows_optimizer(schedule_, optimizer);
  }

 private:
  optim::Schedule& schedule_;
};

class SavedEma : public PartObject {
 public:
  explicit SavedEma(Ema& ema) : PartObject("ema", &ema, Order::other), ema_(ema) {}
  PartContent save() const override { return {.tensors = ema_.state()}; }
  void load(const PartContent& content, const PartLoad&) override {
    ema_.load_state(content.tensors);
  }
  const Arena* arena() const override { return ema_.model().existing_arena(); }

 private:
  Ema& ema_;
};

class SavedRandom : public PartObject {
 public:
  explicit SavedRandom(Generator& random)
      : PartObject("random", &random, Order::other), random_(random) {}
  PartContent save() const override {
    PartContent content;
    manifest::add_random(content.fields, "", random_);
    return content;
  }
  void load(const PartContent& content, const PartLoad&) override {
    random_ = manifest::random_of(content.fields, "");
  }

 private:
  Generator& random_;
};

class SavedPosition : public PartObject {
 public:
  explicit SavedPosition(LoaderPosition& position)
      : PartObject("position", &position, Order::other), position_(position) {}
  PartContent save() const override {
    PartContent content{
        .fields = {{"epoch", shortest(position_.epoch)}, {"batch", shortest(position_.batch)}}};
    if (position_.loader) {
      content.fields["data"] = to_string(position_.loader->identity());
      content.fields["global_batch"] = shortest(global_batch());
      content.fields["order"] = manifest::order_of(*position_.loader);
    }
    return content;
  }
  void load(const PartContent& content, const PartLoad& how) override {
    const int64_t epoch = count(content.fields, "epoch"), batch = count(content.fields, "batch");
    if (position_.loader) {
      check_loader(content.fields, batch, how.force);
    }
    position_.epoch = epoch;
    position_.batch = batch;
  }

 private:
  int64_t global_batch() const {
    const data::LoaderOptions& options = position_.loader->options();
    return options.batch * options.shard_count;
  }
  void check_loader(const manifest::Fields& fields, int64_t batch, bool force) const {
    if (const auto data = fields.find("data"); data != fields.end()) {
      const std::string differs =
          difference(position_.loader->identity(), data::parse_identity(data->second));
      if (!differs.empty()) {
        manifest::refuse_other_data(differs, "loader", force);
      }
    }
    if (batch > 0 && fields.contains("global_batch")) {
      const int64_t before = count(fields, "global_batch", 1);
      check(before == global_batch(), "load_checkpoint: got a loader of batch ", global_batch(),
            " (all shards), expected ", before,
            " as before: the checkpoint is in the middle of an epoch, after ", batch, " batches");
    }
    const std::string order = manifest::order_of(*position_.loader);
    if (const auto before = fields.find("order");
        batch > 0 && before != fields.end() && before->second != order) {
      manifest::refuse_other_order(order, before->second, force);
    }
    const int64_t batches = position_.loader->batches_per_epoch();
    check(batches < 0 || batch <= batches, "load_checkpoint: got a loader of ", batches,
          " batches, expected at least the ", batch, " that the checkpoint has behind it");
  }

  LoaderPosition& position_;
};

class SavedNumbers : public PartObject {
 public:
  explicit SavedNumbers(Numbers& numbers)
      : PartObject("numbers", &numbers, Order::other), numbers_(numbers) {}
  PartContent save() const override {
    PartContent content;
    for (const auto& [name, value] : numbers_) {
      content.fields[name] = shortest(value);
    }
    return content;
  }
  void load(const PartContent& content, const PartLoad&) override {
    Numbers loaded;
    for (const auto& [name, value] : content.fields) {
      loaded[name] = manifest::real(content.fields, name);
    }
    numbers_ = std::move(loaded);
  }

 private:
  Numbers& numbers_;
};

class SavedTensor : public PartObject {
 public:
  explicit SavedTensor(Tensor& tensor)
      : PartObject("tensor", &tensor, Order::other), tensor_(tensor) {}
  PartContent save() const override {
    check(tensor_.defined(), "save_checkpoint: got an undefined tensor, expected a defined one");
    return {.tensors = {{"value", tensor_.detach()}}};
  }
  void load(const PartContent& content, const PartLoad&) override {
    const bool one = content.tensors.size() == 1 && content.tensors[0].first == "value";
    check(one, "load_checkpoint: got a file of ", content.tensors.size(),
          " tensors, expected one named 'value'");
    const Tensor& value = content.tensors[0].second;
    check(tensor_.defined() && value.sizes() == tensor_.sizes() && value.dtype() == tensor_.dtype(),
          "load_checkpoint: got ",
          tensor_.defined() ? text("a tensor ", tensor_.dtype(), " ", tensor_.sizes())
                            : "an undefined tensor",
          ", expected ", value.dtype(), " ", value.sizes(), " as in the checkpoint");
    const NoGradGuard guard;
    tensor_.copy_(value);
  }

 private:
  Tensor& tensor_;
};

class SavedText : public PartObject {
 public:
  explicit SavedText(std::string& text) : PartObject("text", &text, Order::other), text_(text) {}
  PartContent save() const override {
    check(text_.find('\0') == std::string::npos,
          "save_checkpoint: got a text with a zero byte, expected one without");
    return {.fields = {{"value", text_}}};
  }
  void load(const PartContent& content, const PartLoad&) override {
    text_ = manifest::field(content.fields, "value");
  }

 private:
  std::string& text_;
};

template <class T>
class SavedNumber : public PartObject {
 public:
  SavedNumber(const char* kind, const void* address, std::function<T()> get,
              std::function<bool(T)> set)
      : PartObject(kind, address, Order::other), get_(std::move(get)), set_(std::move(set)) {}
  PartContent save() const override { return {.fields = {{"value", shortest(get_())}}}; }
  void load(const PartContent& content, const PartLoad&) override {
    T value;
    if constexpr (std::is_same_v<T, double>) {
      value = manifest::real(content.fields, "value");
    } else {
      value = manifest::integer(content.fields, "value");
    }
    check(set_(value), "load_checkpoint: got the number ", value,
          " in the checkpoint, which the type of the variable cannot hold");
  }

 private:
  std::function<T()> get_;
  std::function<bool(T)> set_;
};

// Default names are given later, by the order of the parts (checkpoint.cpp).
std::string checked(std::string name, bool needed) {
  constexpr const char* kGood = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  check(!needed || !name.empty(),
        "checkpoint: got a tensor, text or number without a name, expected a name");
  check(name.find_first_not_of(kGood) == std::string::npos && name.size() <= 64,
        "checkpoint: got a part of the name '", name,
        "', expected at most 64 letters, digits, '_' and '-'");
  return name;
}

}  // namespace

CheckpointPart::CheckpointPart(std::string name, nn::Module& model)
    : name_(checked(std::move(name), false)), object_(std::make_shared<SavedModel>(model)) {}
CheckpointPart::CheckpointPart(std::string name, optim::Optimizer& optimizer)
    : name_(checked(std::move(name), false)),
      object_(std::make_shared<SavedOptimizer>(optimizer)) {}
CheckpointPart::CheckpointPart(std::string name, optim::LossScaler& scaler)
    : name_(checked(std::move(name), false)),
      object_(std::make_shared<SavedScalars<optim::LossScaler>>("scaler", scaler)) {}
CheckpointPart::CheckpointPart(std::string name, optim::Schedule& schedule)
    : name_(checked(std::move(name), false)), object_(std::make_shared<SavedSchedule>(schedule)) {}
CheckpointPart::CheckpointPart(std::string name, optim::ReduceLROnPlateau& plateau)
    : name_(checked(std::move(name), false)),
      object_(std::make_shared<SavedScalars<optim::ReduceLROnPlateau>>("plateau", plateau)) {}
CheckpointPart::CheckpointPart(std::string name, Ema& ema)
    : name_(checked(std::move(name), false)), object_(std::make_shared<SavedEma>(ema)) {}
CheckpointPart::CheckpointPart(std::string name, Generator& random)
    : name_(checked(std::move(name), false)), object_(std::make_shared<SavedRandom>(random)) {}
CheckpointPart::CheckpointPart(std::string name, LoaderPosition& position)
    : name_(checked(std::move(name), false)), object_(std::make_shared<SavedPosition>(position)) {}
CheckpointPart::CheckpointPart(std::string name, Numbers& numbers)
    : name_(checked(std::move(name), false)), object_(std::make_shared<SavedNumbers>(numbers)) {}
CheckpointPart::CheckpointPart(std::string name, Tensor& tensor)
    : name_(checked(std::move(name), true)), object_(std::make_shared<SavedTensor>(tensor)) {}
CheckpointPart::CheckpointPart(std::string name, std::string& text)
    : name_(checked(std::move(name), true)), object_(std::make_shared<SavedText>(text)) {}
CheckpointPart::CheckpointPart(std::string name, Integer integer)
    : name_(checked(std::move(name), true)),
      object_(std::make_shared<SavedNumber<int64_t>>(
          "integer", integer.number, std::move(integer.get), std::move(integer.set))) {}
CheckpointPart::CheckpointPart(std::string name, Real real)
    : name_(checked(std::move(name), true)),
      object_(std::make_shared<SavedNumber<double>>("number", real.number, std::move(real.get),
                                                    std::move(real.set))) {}

void check_relations(const std::vector<NamedPart>& parts, const char* call) {
  std::vector<const PartObject*> models, optimizers;
  for (const auto& [name, object] : parts) {
    if (object->kind() == "model" || object->kind() == "optimizer") {
      (object->kind() == "model" ? models : optimizers).push_back(object);
    }
  }
  for (const auto& [name, object] : parts) {
    const auto is_own_model = [&object = object](const PartObject* model) {
      return model->arena() == object->arena();
    };
    check(models.empty() || !object->arena() ||
              std::any_of(models.begin(), models.end(), is_own_model),
          call, ": the ", object->kind(), " '", name,
          "' is of another model than the one given, expected one of ",
          models.size() > 1 ? "the models" : "the model", " of this checkpoint");
    check(optimizers.empty() || std::any_of(optimizers.begin(), optimizers.end(),
                                            [&object = object](const PartObject* optimizer) {
                                              return object->follows(*optimizer);
                                            }),
          call, ": the ", object->kind(), " '", name,
          "' is of another optimizer than the one given, expected one of ",
          optimizers.size() > 1 ? "the optimizers" : "the optimizer", " of this checkpoint");
  }
}

}  // namespace binade::train
