// LeafOwner: links the leaf of a parameter to the module that registered it. When an op records the
// leaf in the forward() of a module, the owner is told, once per change of the module. It warns if
// that module is not part of the owner's model. Internal to core and nn.
#pragma once
#include <binade/core/autograd/node.h>

namespace binade {

class LeafOwner {
 public:
  virtual ~LeafOwner() = default;
  // An op records the leaf while `module` (an nn::Module) runs on this thread.
  void note_use(const Leaf& leaf, const void* module) {
    if (last_.load(std::memory_order_relaxed) != module) [[unlikely]] {
      last_.store(module, std::memory_order_relaxed);
      used_in(leaf, module);
    }
  }

 protected:
  virtual void used_in(const Leaf& leaf, const void* module) = 0;

 private:
  std::atomic<const void*> last_{nullptr};
};

namespace detail {

// For every input of a recorded op.
inline void note_use(const Node& from) {
  if (from.owned && thread_state.module) {
    const auto& leaf = static_cast<const Leaf&>(from);
    leaf.owner->note_use(leaf, thread_state.module);
  }
}

inline void set_owner(const Tensor& leaf, std::shared_ptr<LeafOwner> owner) {
  auto& node = static_cast<Leaf&>(*leaf.history());
  node.owned = owner != nullptr;
  node.owner = std::move(owner);
}

}  // namespace detail
}  // namespace binade
