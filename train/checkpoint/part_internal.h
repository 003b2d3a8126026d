// PartObject: how a checkpoint saves and restores one object. Internal to train.
#pragma once
#include <binade/core/io/named_tensors.h>
#include <binade/train/checkpoint/fields_internal.h>
#include <binade/train/checkpoint/part.h>

#include <string>
#include <vector>

namespace binade {
class Arena;
}

namespace binade::train {

struct PartContent {
  NamedTensors tensors = {};  // a file NAME.safetensors, if there are any
  manifest::Fields fields = {};
  NamedTensors scales = {};  // of delayed scales: a file NAME.scales.safetensors
};

// Options of loading a part.
struct PartLoad {
  bool force = false;  // other data are a warning
};

class PartObject {
 public:
  // The order of loading. An optimizer comes after a model, whose masters it sets, and after a
  // schedule, since its rates replace the schedule's; a plateau, which reads the rates, comes last.
  enum class Order : uint8_t { model, schedule, optimizer, other };

  PartObject(const char* kind, const void* address, Order order)
      : kind_(kind), address_(address), order_(order) {}
  virtual ~PartObject() = default;
  PartObject(const PartObject&) = delete;
  PartObject& operator=(const PartObject&) = delete;

  // The current state. Tensors may share memory with the object.
  virtual PartContent save() const = 0;
  // Loads everything or nothing: throws if the content does not fit.
  virtual void load(const PartContent& content, const PartLoad& how) = 0;

  // The arena of the parameters that it holds or trains; null if it has none, or will only have
  // one.
  virtual const Arena* arena() const { return nullptr; }
  // False if it belongs to another optimizer than this one.
  virtual bool follows(const PartObject&) const { return true; }

  const std::string& kind() const { return kind_; }
  const void* address() const { return address_; }
  Order order() const { return order_; }

 private:
  std::string kind_;
  const void* address_;
  Order order_;
};

struct NamedPart {
  std::string name;
  PartObject* object;
};

// Throws if the model of an optimizer or Ema is not among the parts, or the optimizer of a
// schedule: they would be restored together with weights that are not theirs. `call` is for the
// message.
void check_relations(const std::vector<NamedPart>& parts, const char* call);

}  // namespace binade::train
