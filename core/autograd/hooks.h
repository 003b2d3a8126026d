// Hooks on gradients.
//
// A hook of an op's result runs in each backward, after the gradient is complete and before the
// op's backward reads it. It may look at the gradient or replace it. A hook of a leaf runs when
// this backward cannot add to the leaf any more. It gets the gradient as the leaf holds it: with
// the gradients of earlier backwards, and multiplied by the loss scale if there is one. grad() does
// not run hooks of leaves, since it does not touch .grad.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <functional>

namespace binade {

using GradientHook = std::function<void(Tensor& gradient)>;

// The result of on_gradient(). remove() may be called at any time, but only from the thread that
// runs backward.
class HookHandle {
 public:
  HookHandle() = default;
  explicit HookHandle(uint64_t id) : id_(id) {}
  void remove();

 private:
  uint64_t id_ = 0;
};

// Hooks of one tensor run in the order in which they were added, and live as long as its history. A
// replacement has the sizes, dtype and device of the gradient that it replaces.
HookHandle on_gradient(const Tensor& t, GradientHook hook);

namespace detail {
// A hook of an op that is being recorded, which runs as one of its result.
void add_hook(Node& node, GradientHook hook);
void run_hooks(Node& node, Tensor& gradient);
void drop_hooks(Node& node);
void copy_hooks(const Node& from, Node& to);  // adds the hooks of `from` to `to`
}  // namespace detail

}  // namespace binade
