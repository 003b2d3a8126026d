// Hooks on gradients.
//
// A hook of an op's result runs in each backward once its gradient is complete and before it goes
// on into the op: to look at it, or to put another in its place. A hook of a leaf runs when this
// backward cannot add to the leaf any more, on the gradient as the leaf holds it: with what earlier
// backwards left there, and with the loss scale where one is in force. Hooks of leaves are not run
// by grad(), which leaves .grad alone.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <functional>

namespace binade {

using GradientHook = std::function<void(Tensor& gradient)>;

// What on_gradient() returns. remove() may come at any time, but from the thread that runs
// backward.
class HookHandle {
 public:
  HookHandle() = default;
  explicit HookHandle(uint64_t id) : id_(id) {}
  void remove();

 private:
  uint64_t id_ = 0;
};

// Hooks of one tensor run in the order in which they were added, and live as long as its history.
// A gradient that a hook puts in has the sizes, dtype and device of the one it replaces.
HookHandle on_gradient(const Tensor& t, GradientHook hook);

namespace detail {
void run_hooks(Node& node, Tensor& gradient);
void drop_hooks(Node& node);
void copy_hooks(const Node& from, Node& to);  // those of `from` become hooks of `to` as well
}  // namespace detail

}  // namespace binade
