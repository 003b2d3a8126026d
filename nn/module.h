// Module: a named tree of parameters, buffers and child modules.
//
// A module registers pointers to its own Tensor members, so it neither moves nor copies: it lives
// where it was constructed, or in a unique_ptr. Parameters of the whole tree live in one Arena,
// built at the root by the first parameters() or to(); until then each is a tensor of its own.
// Gradients of a backward before that move into the arena. Names are paths from the root:
// "conv1.weight".
//
// A parameter may be changed in place under a NoGradGuard: init functions, fill_(), copy_(). Under
// `mixed` its f32 master then takes the new, rounded value. load_state() and soft_update() set the
// master to the value before rounding. After a write to data() call bump_version().
#pragma once
#include <binade/core/io/named_tensors.h>
#include <binade/core/observe/label.h>
#include <binade/core/precision/precision.h>
#include <binade/core/tensor/parameter.h>

#include <concepts>
#include <optional>
#include <utility>

namespace binade::nn {

struct ParameterTraits {
  bool norm_or_bias = false;   // not decayed on request
  bool channels_last = false;  // [O, C, R, S] in OHWI memory order
  bool keep_f32 = false;       // stays f32 where the policy `mixed` makes the others f16 or bf16
};

class Module {
 public:
  Module() = default;
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  virtual Tensor forward(const Tensor& x) = 0;
  // forward() under this module's path and precision.
  Tensor operator()(const Tensor& x);

  // The trainable and frozen parameters below this module, with their paths from the root. Builds
  // the arena of the whole tree on the first call.
  ParameterList parameters();
  // Paths from this module; tied parameters under their first name.
  NamedTensors named_parameters() const;
  NamedTensors named_buffers() const;
  int64_t parameter_count() const;

  void train(bool on = true);  // this module and all below
  void eval() { train(false); }
  bool is_training() const { return training_; }
  // The modes of this module and all below, to be restored after an evaluation.
  std::vector<bool> training_modes() const;
  void set_training_modes(const std::vector<bool>& modes);

  // Moves and converts everything below this module. Under `mixed`, parameters become f16 or bf16
  // with f32 masters, but norms and buffers stay f32; under `half` everything becomes low, without
  // masters. Throws once an optimizer holds the parameters.
  void to(Device device, const Precision& precision);
  // The whole tree goes on in full precision: f16 and bf16 parameters become f32, with the values
  // of their masters where they have them, and ops follow no policy. Unlike to() also while an
  // optimizer holds the parameters, which goes on with its state. Gradients are forgotten.
  void to_full_precision();
  // In the precision that BINADE_PRECISION asks for, else full.
  void to(Device device);
  // f32 or f64, full precision. (A template so that to({}) is the device.)
  template <std::same_as<DType> T>
  void to(T dtype) {
    to_dtype(dtype);
  }
  const std::optional<Precision>& precision() const { return precision_; }
  Device device() const;  // of its first parameter or buffer; cpu where it has none

  // From now on the batch norms below this module take, in training, mean and variance over the
  // batches of all ranks of the group, as if they were one batch: forward and backward become
  // collective. Null: over their own again. Returns how many there are. The group outlives the
  // module.
  int64_t synchronize_batch_norms(RankGroup* group);

  // A frozen parameter gets neither gradient nor update. `prefix` is a path from this module
  // ("conv1", "conv1.bias", "": all); one that names nothing is an error. Tied parameters freeze
  // together.
  void freeze(std::string_view prefix = "");
  void unfreeze(std::string_view prefix = "");

  // Parameters and buffers in a fixed order: what a checkpoint holds. They share memory with the
  // model.
  NamedTensors state() const;
  // Sets parameters and buffers by name, with conversion of the dtype; masters follow. One error
  // lists all missing, unexpected and wrongly shaped names, and nothing is changed. The counters
  // "num_batches_tracked" in PyTorch's files are passed over; tied parameters may come under any
  // name.
  void load_state(const NamedTensors& state);

  // Every parameter and buffer moves by the share tau from where it is to the source's value:
  // value += tau (source - value), integer buffers become the source's. For target networks and
  // averages of weights. Computed and kept in the f32 masters where there are any, because a small
  // tau changes no f16 weight: a network that shall follow another so needs the policy `mixed` or
  // f32 weights. The source has the same names and shapes.
  void soft_update(const Module& source, double tau);

  // A module with parameters that runs in the forward() of another one, without being registered
  // anywhere below the same root, gives a warning once: a forgotten register_module() means that it
  // is neither trained nor saved. There is none where all its parameters are frozen, where an
  // optimizer holds them, or where the other module holds them too (tied); this says that any other
  // case is meant.
  void allow_unregistered() { allow_unregistered_ = true; }

  // A table: name, shape, dtype, number of elements, remarks.
  std::string describe() const;
  // What the precision does in each module of the tree: how its parameters are stored, and per
  // class of ops the dtype in which inputs are taken, with the rules that apply there. A
  // PrecisionLedger tells what a run did.
  std::string explain_precision() const;

 protected:
  // f() under this module's path and precision: for modules with more entries than forward().
  template <class F>
  auto scoped(F&& f) -> decltype(f()) {
    const Running running(*this);
    const LabelScope scope(label());
    try {
      if (!precision_) {
        return f();
      }
      const PrecisionScope precision(*precision_);
      return f();
    } catch (Error& error) {
      add_path(error);
      throw;
    }
  }

  // REQUIRES: the member lives as long as the module. A name has no dot and is used once.
  void register_parameter(std::string_view name, Tensor& parameter, ParameterTraits traits = {});
  void register_buffer(std::string_view name, Tensor& buffer);
  void register_module(std::string_view name, Module& child);

  // Whether forward() depends on is_training() in a module without parameters and buffers, as that
  // of Dropout: such a module must be registered too.
  virtual bool depends_on_mode() const { return false; }

 private:
  friend class ModuleReport;

  // This module is the one that runs on this thread.
  class Running {
   public:
    explicit Running(const Module& module) : outer_(detail::thread_state.module) {
      if (outer_ && outer_ != module.parent_) [[unlikely]] {
        module.check_runs_in(*static_cast<const Module*>(outer_));
      }
      detail::thread_state.module = &module;
    }
    ~Running() { detail::thread_state.module = outer_; }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    const void* outer_;
  };
  struct OwnParameter {
    std::string name;
    Tensor* tensor;
    ParameterTraits traits;
    bool trainable = true;
    Tensor leaf = {};  // where frozen after the arena was built: what unfreeze() restores
  };
  struct Member {
    std::string path;
    OwnParameter* own;
  };
  // One parameter of the tree: all members that hold it (more than one where it is tied).
  struct Shared {
    std::vector<Member> members;
    const std::string& name() const { return members[0].path; }
    const Tensor& tensor() const { return *members[0].own->tensor; }
    const ParameterTraits& traits() const { return members[0].own->traits; }
  };
  struct Buffer {
    std::string path;
    Tensor* tensor;
  };

  // f(path, module) for this module and all below.
  template <class F>
  void walk(const std::string& path, F&& f);
  template <class F>
  void walk(const std::string& path, F&& f) const;
  std::vector<Shared> shared_parameters(const std::string& path = "") const;
  std::vector<Buffer> buffers() const;
  const Module& root() const;
  Module& root();
  std::string path() const;  // from the root
  uint32_t label();
  // Warns once where this module runs in the forward of another that it is no part of.
  void check_runs_in(const Module& outer) const;
  bool is_held_by(const Module& other) const;
  static void add_path(Error& error);  // of the module that runs, once

  void check_name(std::string_view name) const;
  void set_trainable(std::string_view prefix, bool trainable);
  void to_dtype(DType dtype);
  void convert(Device device, DType wide, const Precision& precision);
  DType wanted_dtype(const Shared& parameter, const std::string& path) const;
  bool arena_is_current() const;
  void build_arena();
  void leave_arena();
  const Parameter* parameter_of(const Tensor& value) const;
  Tensor master_of(const Tensor& value) const;
  Tensor exact_value(const Tensor& value) const;  // of a parameter or buffer: its master, or itself
  void set_value(const Tensor& value, const Tensor& source) const;
  // Of a batch norm: true, from now on it takes statistics over the group.
  virtual bool synchronize(RankGroup*) { return false; }

  std::string name_;  // in the parent; empty at the root
  Module* parent_ = nullptr;
  std::vector<std::unique_ptr<OwnParameter>> own_parameters_;
  std::vector<std::pair<std::string, Tensor*>> own_buffers_;
  std::vector<Module*> children_;
  bool training_ = true;
  bool allow_unregistered_ = false;
  mutable std::atomic<bool> judged_{false};  // at the root: check_runs_in() has decided
  std::optional<Precision> precision_;       // set by to(), with the dtype of what is not low
  DType wide_ = DType::f32;
  std::shared_ptr<Arena> arena_;    // at the root
  std::atomic<uint64_t> label_{0};  // the caller's label and, for it, this module's: a cache
};

}  // namespace binade::nn
