#include <binade/kernels/copy/dense_internal.h>

namespace binade::kernels {
namespace {

Dims strides_in(const View& view, Order order) {
  return order == Order::row_major ? row_major_strides(view.sizes)
                                   : channels_last_strides(view.sizes);
}

// Dimensions of size 1 may have any stride.
bool has_strides(const View& view, const Dims& strides) {
  for (int i = 0; i < view.dim(); ++i) {
    if (view.sizes[i] != 1 && view.strides[i] != strides[i]) {
      return false;
    }
  }
  return true;
}

bool is_packed(const View& view, Order order) {
  return view.numel == 0 || !view || (order == Order::row_major && view.contiguous) ||
         has_strides(view, strides_in(view, order));
}

size_t packed_bytes(const View& view, Order order) {
  return is_packed(view, order) ? 0 : static_cast<size_t>(view.numel) * size_of(view.dtype);
}

View packed_view(const View& view, Order order, const Workspace& memory) {
  View packed = view;
  if (!is_packed(view, order)) {
    packed.data = memory.as<std::byte>();
    packed.strides = strides_in(view, order);
    packed.contiguous = is_row_major(packed.sizes, packed.strides);
  }
  return packed;
}

}  // namespace

DenseInput::DenseInput(const View& source, Order order)
    : packed_(packed_bytes(source, order), source.device),
      view_(packed_view(source, order, packed_)) {
  if (view_.data != source.data) {
    copy({.x = source, .y = view_});
  }
}

DenseOutput::DenseOutput(const View& target, Order order)
    : packed_(packed_bytes(target, order), target.device),
      view_(packed_view(target, order, packed_)),
      target_(target) {}

void DenseOutput::store() const {
  if (view_.data != target_.data) {
    copy({.x = view_, .y = target_});
  }
}

}  // namespace binade::kernels
