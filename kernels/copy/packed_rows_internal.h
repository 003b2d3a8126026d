// A tensor as rows: the elements along one dimension are adjacent, and all other dimensions are
// merged in order into a row number. Vector kernels work on rows; a tensor with other strides is
// copied to and from a workspace.
#pragma once
#include <binade/kernels/base/view.h>
#include <binade/kernels/base/workspace.h>

namespace binade::kernels {

enum class Access : uint8_t { read, write };

class PackedRows {
 public:
  // Views `view` as rows of dimension `dim`, by a copy if its strides need one. REQUIRES: at least
  // one dimension, and `view` outlives this object. An undefined view has no rows.
  PackedRows(const View& view, int dim, Access access);

  std::byte* data() const { return view_.data; }
  int64_t stride() const { return stride_; }  // elements between rows
  std::byte* row(int64_t index) const {
    return view_.data + index * stride_ * static_cast<int64_t>(size_of(view_.dtype));
  }
  // Call it after writing: copies packed rows back to the original view.
  void unpack() const;

 private:
  const View& original_;
  int64_t stride_ = 0;
  bool direct_;
  Workspace workspace_;
  View view_;
};

// Strides of a dense tensor with `dim` innermost and the other dimensions in their order.
Dims innermost_strides(const Dims& sizes, int dim);

}  // namespace binade::kernels
