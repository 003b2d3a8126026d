// View: a strided window on memory, the argument type of all kernels. It owns nothing.
#pragma once
#include <binade/kernels/base/device.h>
#include <binade/kernels/base/dims.h>
#include <binade/kernels/base/dtype.h>

namespace binade {

struct View {
  std::byte* data = nullptr;  // first element; null for an absent optional argument
  int64_t numel = 0;
  DType dtype = DType::f32;
  Device device{};
  bool contiguous = true;   // row-major and dense
  Dims sizes{}, strides{};  // strides in elements

  bool defined() const { return data != nullptr || numel == 0; }
  explicit operator bool() const { return data != nullptr; }
  int dim() const { return sizes.size(); }
  int64_t size(int i) const { return sizes[i]; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
};

// A constant, so that no source needs an initialiser that runs at program start: in an *_isa.cpp
// file it could use instructions that the machine does not have.
inline constexpr View kNoView{.device = {}, .sizes = Dims::none(), .strides = Dims::none()};

// A view of existing memory; strides default to row-major.
View view_of(void* data, DType dtype, const Dims& sizes);
View view_of(void* data, DType dtype, const Dims& sizes, const Dims& strides);

}  // namespace binade
