#include <binade/kernels/copy/copy.h>
#include <binade/kernels/copy/packed_rows_internal.h>

namespace binade::kernels {
namespace {

// The stride between rows if the view has the layout of rows, else -1.
int64_t row_stride(const View& view, int dim) {
  if (view.size(dim) != 1 && view.strides[dim] != 1) {
    return -1;
  }
  int64_t stride = view.size(dim), next = -1;  // next: the stride that merges with the dims inside
  for (int i = view.dim() - 1; i >= 0; --i) {
    if (i == dim || view.size(i) == 1) {
      continue;
    }
    if (next < 0) {
      stride = view.strides[i];
    } else if (view.strides[i] != next) {
      return -1;
    }
    next = view.strides[i] * view.size(i);
  }
  return stride;
}

size_t packed_bytes(const View& view) {
  return static_cast<size_t>(view.numel) * size_of(view.dtype);
}

}  // namespace

Dims innermost_strides(const Dims& sizes, int dim) {
  Dims strides = sizes;
  strides[dim] = 1;
  int64_t stride = sizes[dim];
  for (int i = sizes.size() - 1; i >= 0; --i) {
    if (i != dim) {
      strides[i] = stride;
      stride *= sizes[i];
    }
  }
  return strides;
}

PackedRows::PackedRows(const View& view, int dim, Access access)
    : original_(view),
      stride_(view ? row_stride(view, dim) : 0),
      direct_(stride_ >= 0),
      workspace_(direct_ ? 0 : packed_bytes(view), view.device),
      view_(view) {
  if (direct_) {
    return;
  }
  stride_ = view.size(dim);
  view_ = view_of(workspace_.as<std::byte>(), view.dtype, view.sizes,
                  innermost_strides(view.sizes, dim));
  if (access == Access::read) {
    cpu::copy({.x = original_, .y = view_});
  }
}

void PackedRows::unpack() const {
  if (!direct_) {
    cpu::copy({.x = view_, .y = original_});
  }
}

}  // namespace binade::kernels
