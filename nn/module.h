// Module: a named tree of parameters, buffers and child modules.
//
//   struct Net : nn::Module {
//     nn::Linear fc1{*this, "fc1", {.in = 784, .out = 64}};
//     nn::Linear fc2{*this, "fc2", {.in = 64, .out = 10}};
//     Tensor forward(const Tensor& x) override { return fc2(relu(fc1(x))); }
//   };
//
// A member that is constructed with *this and a name is registered; register_module("fc1", fc1) in
// the constructor does the same. forward() with other inputs or results: nn/callable.h.
//
// A module registers pointers to its own Tensor members, so it can be neither moved nor copied: it
// stays where it was constructed, or in a unique_ptr. Parameters of the whole tree live in one
// Arena, built at the root by the first parameters() or to(); until then each is a tensor of its
// own. Gradients of a backward before that move into the arena. Names are paths from the root:
// "conv1.weight".
//
// A parameter may be changed in place under a NoGradGuard: init functions, fill_(), copy_(). Under
// `mixed` its f32 master then takes the new, rounded value. load_state() and soft_update() set the
// master to the value before rounding. A write through data<T>() counts too: elements that differ
// from their rounded masters are copied to the masters.
//
// Thread safety: any number of threads may run one module at the same time in evaluation mode, each
// under its own NoGradGuard or with its own graph; so may threads in training mode if no module
// below updates buffers (BatchNorm does). Everything that changes the module (train(), to(),
// load_state(), freeze(), an optimizer step, backward into its parameters) needs the module alone.
// Guards, scopes and the random generator belong to a thread.
#pragma once
#include <binade/core/io/named_tensors.h>
#include <binade/core/observe/label.h>
#include <binade/core/owned.h>
#include <binade/core/precision/precision.h>
#include <binade/core/tensor/parameter.h>
#include <binade/nn/load_options.h>

#include <concepts>
#include <optional>
#include <utility>

namespace binade::nn {

struct ParameterTraits {
  bool norm_or_bias = false;   // not decayed on request
  bool channels_last = false;  // [O, C, R, S] in OHWI memory order
  bool keep_f32 = false;       // stays f32 where the policy `mixed` makes others f16 or bf16
};

class Module {
 public:
  Module() = default;
  // Registers this module in its parent under a name. `using Module::Module;` gives a class of your
  // own this constructor: Block block{*this, "block"}.
  Module(Module& parent, std::string_view name) { join(parent, name); }
  virtual ~Module();  // leaves the parent
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  virtual Tensor forward(const Tensor& x);  // another result or more inputs: nn/callable.h
  // forward() under this module's path and precision.
  Tensor operator()(const Tensor& x);

  // The trainable and frozen parameters below this module, with their paths from the root. Builds
  // the arena of the whole tree on the first call.
  ParameterList parameters();
  // Null before the first parameters(). Shows whether an optimizer or a list belongs to this model.
  const Arena* existing_arena() const { return root().arena_.get(); }
  // Parameters by their path from this module; a tied parameter has its first name.
  NamedTensors named_parameters() const;
  NamedTensors named_buffers() const;
  int64_t parameter_count() const;

  void train(bool on = true);  // this module and all below
  void eval() { train(false); }
  bool is_training() const { return training_; }
  // The modes of this module and all below, to be restored after an evaluation.
  std::vector<bool> training_modes() const;
  void set_training_modes(const std::vector<bool>& modes);
  // The paths of the same modules, in the same order; this module's own is empty.
  std::vector<std::string> module_paths() const;

  // Moves and converts everything below this module. Under `mixed` parameters become f16 or bf16
  // with f32 masters, but norms and buffers stay f32. Under `half` everything becomes f16 or bf16,
  // without masters. Throws once an optimizer holds the parameters.
  void to(Device device, const Precision& precision);
  // Converts the whole tree to full precision: f16 and bf16 parameters become f32, with the values
  // of their masters if they have masters, and ops follow no policy. Unlike to() it also works
  // while an optimizer holds the parameters; the optimizer keeps its state. Gradients are dropped.
  void to_full_precision();
  // Uses the precision that BINADE_PRECISION names, else full precision.
  void to(Device device);
  // Full precision in f32 or f64. (A template, so that to({}) means the device.)
  template <std::same_as<DType> T>
  void to(T dtype) {
    to_dtype(dtype);
  }
  const std::optional<Precision>& precision() const { return precision_; }
  Device device() const;  // of its first parameter or buffer; cpu if it has none

  // From now on, in training, the batch norms below this module compute mean and variance over the
  // batches of all ranks of the group, as if they were one batch; forward and backward become
  // collective. If null, they use their own batch again. Returns the number of batch norms.
  // REQUIRES: the group outlives the module.
  int64_t synchronize_batch_norms(RankGroup* group);

  // A frozen parameter gets neither gradient nor update. `prefix` is a path from this module
  // ("conv1", "conv1.bias", "": all); a path that does not exist is an error. Tied parameters
  // freeze together.
  void freeze(std::string_view prefix = "");
  void unfreeze(std::string_view prefix = "");

  // Parameters and buffers in a fixed order, as a checkpoint stores them. They share memory with
  // the model.
  NamedTensors state() const;
  // Sets parameters and buffers by name, with conversion of the dtype; masters follow. One error
  // lists all missing, unexpected and wrongly shaped names, and nothing is changed. The counters
  // "num_batches_tracked" in PyTorch's files are ignored; a tied parameter may have any of its
  // names. The options load a part of a state, or one with other names: nn/load_options.h.
  LoadReport load_state(const NamedTensors& state, const LoadOptions& options = {});
  // As state(), but a parameter with an f32 master is given as the master: the values before
  // rounding. load_state() of the result restores both exactly.
  NamedTensors exact_state() const;

  // Moves every parameter and buffer towards the source: value += tau (source - value); integer
  // buffers are copied. For target networks and averages of weights. The update is computed and
  // kept in the f32 masters if there are any. A small tau does not change an f16 weight, so a
  // network that follows another one needs the policy `mixed` or f32 weights. REQUIRES: the source
  // has the same names and shapes.
  void soft_update(const Module& source, double tau);

  // Allows this module to run in the forward() of another module without being registered below the
  // same root. Otherwise that gives a warning once: after a forgotten register_module() the module
  // is neither trained nor saved. There is also no warning if all its parameters are frozen, if an
  // optimizer holds them, if the other module holds them too (tied), or if the other module turned
  // gradients off around the call (a teacher). The check sees calls module(x) and every op that
  // records a parameter, so it sees child.forward(x), too, which runs without path and precision.
  void allow_unregistered() { allow_unregistered_ = true; }

  // REQUIRES: the member lives as long as the module. A name has no dot and is used once.
  void register_parameter(std::string_view name, Tensor& parameter, ParameterTraits traits = {});
  void register_buffer(std::string_view name, Tensor& buffer);
  void register_module(std::string_view name, Module& child);

  // A table: name, shape, dtype, number of elements, remarks.
  std::string describe() const;
  // The effect of the precision on each module of the tree: how its parameters are stored, the
  // dtype of the inputs for each class of ops, and the rules that apply. A PrecisionLedger records
  // what a run did.
  std::string explain_precision() const;

 protected:
  // f() under this module's path and precision: for modules with other entry points than forward().
  template <class F>
  auto scoped(F&& f) -> decltype(f()) {
    const Running running(*this);
    const LabelScope scope(label(running.outer()));
    try {
      if (!own_parameters_.empty() && detail::thread_state.grad_enabled) {
        check_not_replaced();
      }
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

  // Registers this module in a parent. Constructors with (parent, name, options) call it.
  void join(Module& parent, std::string_view name) { parent.register_module(name, *this); }

  // Runs if a class does not override forward() of one tensor: an error, except in a
  // Callable that can be called so.
  virtual Tensor forward_one(const Tensor& x);

  // True if forward() of a module without parameters and buffers depends on is_training(), as in
  // Dropout: such a module must be registered too.
  virtual bool depends_on_mode() const { return false; }

  // Called by forward() of modules that depend on their mode or have buffers. Warns, as
  // allow_unregistered() says, if this one runs in another module without being registered there.
  void check_place() const;

 private:
  void check_not_replaced() const;
  friend class FreezeOthers;
  friend class ModuleReport;
  friend class StoredAs;
  friend void copy_module(const Module& from, Module& to);

  class Owner;  // tells this module where its parameters are used

  // While one exists, this module is the one that runs on this thread.
  class Running {
   public:
    explicit Running(const Module& module)
        : outer_(detail::thread_state.module),
          outer_recorded_(detail::thread_state.module_recorded) {
      if (outer_ && outer_ != module.parent_) [[unlikely]] {
        module.check_runs_in(*static_cast<const Module*>(outer_));
      }
      detail::thread_state.module = &module;
      detail::thread_state.module_recorded = detail::thread_state.grad_enabled;
    }
    ~Running() {
      detail::thread_state.module = outer_;
      detail::thread_state.module_recorded = outer_recorded_;
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    const void* outer() const { return outer_; }

   private:
    const void* outer_;
    bool outer_recorded_;
  };
  struct OwnParameter {
    std::string name;
    Tensor* tensor;
    ParameterTraits traits;
    bool trainable = true;
    Tensor leaf = {};  // set if frozen after the arena was built; unfreeze() restores it
    std::shared_ptr<LeafOwner> owner = {};  // of the leaf
  };
  struct Member {
    std::string path;
    OwnParameter* own;
  };
  // One parameter of the tree: all members that hold it (more than one if it is tied).
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
  // The label of this module inside the module that runs around it (null if none does).
  uint32_t label(const void* outer);
  uint32_t label_above(const void* outer, uint32_t label) const;
  // Warns once if this module runs in the forward() of a module that it is not part of.
  void check_runs_in(const Module& outer) const;
  bool is_held_by(const Module& other) const;
  bool holds(const Leaf& leaf) const;
  static void add_path(Error& error);  // adds the path of the running module, once

  void check_name(std::string_view name) const;
  void set_trainable(std::string_view prefix, bool trainable);
  static void set_trainable(const Shared& parameter, bool trainable);
  void to_dtype(DType dtype);
  void convert(Device device, DType wide, const Precision& precision);
  DType wanted_dtype(const Shared& parameter, const std::string& path) const;
  bool arena_is_current() const;
  void build_arena();
  void leave_arena();
  const Parameter* parameter_of(const Tensor& value) const;
  Tensor master_of(const Tensor& value) const;
  Tensor exact_value(const Tensor& value) const;  // of a parameter or buffer: its master, or itself
  std::string differs_from(const Module& other) const;  // the first difference of structure
  void set_value(const Tensor& value, const Tensor& source) const;
  // A batch norm returns true and computes its statistics over the group from now on.
  virtual bool synchronize(RankGroup*) { return false; }

  std::string name_;  // in the parent; empty at the root
  Module* parent_ = nullptr;
  std::vector<Owned<OwnParameter>> own_parameters_;
  std::vector<std::pair<std::string, Tensor*>> own_buffers_;
  std::vector<Module*> children_;
  bool training_ = true;
  bool allow_unregistered_ = false;
  mutable std::atomic<bool> judged_{false};  // at the root: check_runs_in() has decided
  std::optional<Precision> precision_;  // set by to(), with the dtype of tensors not f16 or bf16
  DType wide_ = DType::f32;
  std::shared_ptr<Arena> arena_;    // at the root
  std::atomic<uint64_t> label_{0};  // a cache: the caller's label and this module's under it
};

// Gives `to` the values (with masters), buffers, mode, precision, device and frozen parameters of
// `from`. Another structure is an error: the classes, names, shapes and ties must be equal.
void copy_module(const Module& from, Module& to);

// A copy of a module that shares no memory with it. make() returns a new module of the same class
// in a unique_ptr: nn::clone(net, [] { return std::make_unique<Net>(); }). A copy of a part of a
// model is a model of its own.
template <class Make>
auto clone(const Module& model, Make&& make) {
  auto copy = std::forward<Make>(make)();
  check(copy != nullptr, "clone: make() returned no module");
  copy_module(model, *copy);
  return copy;
}

// target += tau (online - target), for every parameter and buffer: Module::soft_update().
inline void soft_update(Module& target, const Module& online, double tau) {
  target.soft_update(online, tau);
}

}  // namespace binade::nn
