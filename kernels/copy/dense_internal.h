// Operands of a kernel that needs row-major (or channels-last) memory: the view itself if its
// layout fits, else a packed copy in workspace.
#pragma once
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/copy/copy.h>

namespace binade::kernels {

// The memory orders that a kernel can ask for. channels_last: [N, C, ...] with C innermost.
enum class Order : uint8_t { row_major, channels_last };

// view() is `source` or a packed copy of it in the wanted order.
class DenseInput {
 public:
  explicit DenseInput(const View& source, Order order = Order::row_major);
  const View& view() const { return view_; }
  template <class T>
  const T* as() const {
    return view_.as<T>();
  }

 private:
  Workspace packed_;
  View view_;
};

// view() is `target` or packed workspace; store() copies workspace back to the target. Call it
// after the kernels that write view(). The target is not read.
class DenseOutput {
 public:
  explicit DenseOutput(const View& target, Order order = Order::row_major);
  const View& view() const { return view_; }
  template <class T>
  T* as() const {
    return view_.as<T>();
  }
  void store() const;

 private:
  Workspace packed_;
  View view_;
  const View& target_;
};

}  // namespace binade::kernels
