// Ema: the exponential moving average of a model's weights (Polyak averaging).
//
//   train::Ema ema(net, {.decay = 0.999});
//   for (...) { ...; optimizer.step(); ema.update(); }
//   { const auto scope = ema.applied(); validate(net); }
//   save_tensors("ema.safetensors", ema.state());
#pragma once
#include <binade/core/io/named_tensors.h>
#include <binade/nn/module.h>

namespace binade::train {

struct EmaOptions {
  double decay = 0.999;  // average = decay average + (1 - decay) value
};

// Averages are f32 (f64 for f64 tensors) on the model's device, also for f16 and bf16 parameters,
// and use the f32 masters if there are any. Floating buffers (running statistics) are averaged too;
// integer buffers are copied. The averages start with the model's values.
//
// REQUIRES: the model outlives the Ema and is not moved to another device. With parameters that are
// sharded over ranks (ZeRO) update() is an error, because no rank has all masters.
class Ema {
 public:
  using Options = EmaOptions;
  // Restores the model's own values at its end. What changed the model in between is lost, and a
  // warning says so.
  class [[nodiscard]] Applied {
   public:
    explicit Applied(Ema& ema);
    ~Applied();
    Applied(const Applied&) = delete;
    Applied& operator=(const Applied&) = delete;

   private:
    std::string changed_tensor() const;  // its name, or ""

    Ema& ema_;
    NamedTensors own_;                // the model's values, exactly
    std::vector<uint32_t> versions_;  // of the tensors of its state, with the averages in them
  };

  explicit Ema(nn::Module& model, const EmaOptions& options = {});
  Ema(const Ema&) = delete;
  Ema& operator=(const Ema&) = delete;

  // Call it after each optimizer step.
  void update();
  int64_t updates() const { return updates_; }
  double decay() const { return decay_; }
  const nn::Module& model() const { return model_; }
  // The averages by the names of Module::state(). They share memory with the Ema.
  const NamedTensors& averages() const { return averages_; }

  // While the scope exists the model has the averages, rounded where it stores f16 or bf16. Do not
  // train in it; update() and a second scope are errors.
  Applied applied() { return Applied(*this); }

  // The averages, and "ema_updates": a scalar.
  NamedTensors state() const;
  // Loads everything or nothing; an error lists all names that do not match.
  void load_state(const NamedTensors& state);

 private:
  nn::Module& model_;
  double decay_;
  int64_t updates_ = 0;
  NamedTensors averages_;
  bool applied_ = false;
};

}  // namespace binade::train
