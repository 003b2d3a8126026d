// CheckpointPart: what a checkpoint of a training loop of your own saves and restores.
//
// A part refers to the object, under a name: by default "model", "optimizer", "scaler", "schedule",
// "plateau", "ema", "random", "position" or "numbers". A second one of a kind needs a name of its
// own: {"target", target}. The order of the parts does not count. A name has letters, digits, '_'
// and '-'.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace binade {
class Tensor;
struct Generator;
}  // namespace binade
namespace binade::nn {
class Module;
}
namespace binade::optim {
class LossScaler;
class Optimizer;
class ReduceLROnPlateau;
class Schedule;
}  // namespace binade::optim
namespace binade::data {
class Loader;
}

namespace binade::train {

class Ema;

// The next batch to train on: loader.epoch(position.epoch, position.batch). With a loader the
// checkpoint also keeps the identity of its data (data/identity.h). It is an error to resume on
// other data, or in the middle of an epoch with another batch size (of all shards).
struct LoaderPosition {
  int64_t epoch = 0, batch = 0;
  const data::Loader* loader = nullptr;
};

using Numbers = std::map<std::string, double>;

class PartObject;  // train/checkpoint/part_internal.h

class CheckpointPart {
 public:
  // Not explicit: save_checkpoint(path, model, adam, scaler). REQUIRES: the object outlives the
  // part. A model is saved with its values (masters where there are some), buffers and what delayed
  // scales remember (nn::format_histories(), under several ranks that of rank 0), an optimizer
  // with masters, moments, rates and counts. Generator: generator() of this thread, or your own.
  CheckpointPart(nn::Module& model) : CheckpointPart("", model) {}                    // NOLINT
  CheckpointPart(optim::Optimizer& optimizer) : CheckpointPart("", optimizer) {}      // NOLINT
  CheckpointPart(optim::LossScaler& scaler) : CheckpointPart("", scaler) {}           // NOLINT
  CheckpointPart(optim::Schedule& schedule) : CheckpointPart("", schedule) {}         // NOLINT
  CheckpointPart(optim::ReduceLROnPlateau& plateau) : CheckpointPart("", plateau) {}  // NOLINT
  CheckpointPart(Ema& ema) : CheckpointPart("", ema) {}                               // NOLINT
  CheckpointPart(Generator& random) : CheckpointPart("", random) {}                   // NOLINT
  CheckpointPart(LoaderPosition& position) : CheckpointPart("", position) {}          // NOLINT
  // Loading replaces all numbers, whatever their names.
  CheckpointPart(Numbers& numbers) : CheckpointPart("", numbers) {}  // NOLINT

  // The same under a name; empty: the default one.
  CheckpointPart(std::string name, nn::Module& model);
  CheckpointPart(std::string name, optim::Optimizer& optimizer);
  CheckpointPart(std::string name, optim::LossScaler& scaler);
  CheckpointPart(std::string name, optim::Schedule& schedule);
  CheckpointPart(std::string name, optim::ReduceLROnPlateau& plateau);
  CheckpointPart(std::string name, Ema& ema);
  CheckpointPart(std::string name, Generator& random);
  CheckpointPart(std::string name, LoaderPosition& position);
  CheckpointPart(std::string name, Numbers& numbers);
  // Any other state, which needs a name: text, a number, and a tensor, which loading fills in place
  // (the same sizes and dtype).
  CheckpointPart(std::string name, Tensor& tensor);
  CheckpointPart(std::string name, std::string& text);
  template <class T>
  requires std::is_arithmetic_v<T> CheckpointPart(std::string name, T& number)
      : CheckpointPart(std::move(name), wide<T>(number)) {}

  const std::string& name() const { return name_; }
  PartObject& object() const { return *object_; }

 private:
  // A number of any type as one of two; set() returns false if the type has no such number.
  struct Integer {
    const void* number;
    std::function<int64_t()> get;
    std::function<bool(int64_t)> set;
  };
  struct Real {
    const void* number;
    std::function<double()> get;
    std::function<bool(double)> set;
  };
  CheckpointPart(std::string name, Integer integer);
  CheckpointPart(std::string name, Real real);
  template <class T>
  static auto wide(T& number);

  std::string name_;
  std::shared_ptr<PartObject> object_;
};

// CheckpointPart(name, object), for the call with separate parts.
template <class T>
CheckpointPart named(std::string name, T& object) {
  return CheckpointPart(std::move(name), object);
}

template <class T>
auto CheckpointPart::wide(T& number) {
  if constexpr (std::is_floating_point_v<T>) {
    static_assert(sizeof(T) <= sizeof(double), "a real number of a checkpoint is float or double");
    return Real{&number, [&number] { return double{number}; },
                [&number](double value) {
                  number = static_cast<T>(value);
                  return true;
                }};
  } else {
    return Integer{&number, [&number] { return static_cast<int64_t>(number); },
                   [&number](int64_t value) {
                     const bool fits = (std::is_signed_v<T> || value >= 0) &&
                                       static_cast<int64_t>(static_cast<T>(value)) == value;
                     number = fits ? static_cast<T>(value) : number;
                     return fits;
                   }};
  }
}

}  // namespace binade::train
