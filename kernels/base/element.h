// The address of an element of a contiguous view, for views of any dtype.
#pragma once
#include <binade/kernels/base/view.h>

namespace binade::kernels {

// The address of element `index` of a contiguous view; null if the view is absent.
inline std::byte* element(const View& view, int64_t index) {
  return view ? view.data + index * static_cast<int64_t>(size_of(view.dtype)) : nullptr;
}

}  // namespace binade::kernels
