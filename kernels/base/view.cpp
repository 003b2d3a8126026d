#include <binade/kernels/base/view.h>

namespace binade {

View view_of(void* data, DType dtype, const Dims& sizes, const Dims& strides) {
  View view;
  view.data = static_cast<std::byte*>(data);
  view.dtype = dtype;
  view.sizes = sizes;
  view.strides = strides;
  view.numel = element_count(sizes);
  view.contiguous = is_row_major(sizes, strides);
  return view;
}

View view_of(void* data, DType dtype, const Dims& sizes) {
  return {.data = static_cast<std::byte*>(data),
          .numel = element_count(sizes),
          .dtype = dtype,
          .sizes = sizes,
          .strides = row_major_strides(sizes)};
}

}  // namespace binade
