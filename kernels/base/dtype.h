// Element types of tensors, and the dispatch from a DType to a C++ type.
#pragma once
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/half.h>

#include <cstddef>
#include <cstdint>
#include <iosfwd>

namespace binade {

enum class DType : uint8_t { f64, f32, f16, bf16, i64, i32, u8, boolean };

inline constexpr int kDTypeCount = 8;

constexpr size_t size_of(DType dtype) {
  // The sizes in hexadecimal digits, f64 in the last: a shift is cheaper than a table in memory.
  return 0x11482248u >> 4 * static_cast<int>(dtype) & 15;
}

constexpr const char* to_string(DType dtype) {
  constexpr const char* kName[kDTypeCount] = {"f64", "f32", "f16", "bf16",
                                              "i64", "i32", "u8",  "bool"};
  return kName[static_cast<int>(dtype)];
}
std::ostream& operator<<(std::ostream& out, DType dtype);

constexpr bool is_floating(DType dtype) { return dtype <= DType::bf16; }
constexpr bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

// The dtype in which kernels compute and accumulate: f64 for f64, f32 for f32, f16 and bf16.
constexpr DType compute_dtype(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

// Distance from 1 to the next larger value; 0 for integers.
constexpr double epsilon(DType dtype) {
  constexpr double kEpsilon[kDTypeCount] = {0x1p-52, 0x1p-23, 0x1p-10, 0x1p-7, 0, 0, 0, 0};
  return kEpsilon[static_cast<int>(dtype)];
}

template <class T>
struct Type {
  using type = T;
};

template <class T>
inline constexpr DType dtype_of = DType::boolean;
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<half> = DType::f16;
template <>
inline constexpr DType dtype_of<bfloat16> = DType::bf16;
template <>
inline constexpr DType dtype_of<int64_t> = DType::i64;
template <>
inline constexpr DType dtype_of<int32_t> = DType::i32;
template <>
inline constexpr DType dtype_of<uint8_t> = DType::u8;

// The C++ type in which values of T are computed: double for double, float for f32, f16, bf16.
template <class T>
struct ComputeType {
  using type = float;
};
template <>
struct ComputeType<double> {
  using type = double;
};
template <class T>
using Compute = typename ComputeType<T>::type;

namespace detail {
[[noreturn]] void unsupported_dtype(const char* op, DType got, const char* expected);
}

// Calls f(Type<T>{}) with the C++ type of a floating dtype; `op` names the caller in the error.
template <class F>
decltype(auto) dispatch_floating(const char* op, DType dtype, F&& f) {
  switch (dtype) {
    case DType::f64: return f(Type<double>{});
    case DType::f32: return f(Type<float>{});
    case DType::f16: return f(Type<half>{});
    case DType::bf16: return f(Type<bfloat16>{});
    default: detail::unsupported_dtype(op, dtype, "a floating dtype (f64, f32, f16, bf16)");
  }
}

// The same for every dtype.
template <class F>
decltype(auto) dispatch(const char* op, DType dtype, F&& f) {
  switch (dtype) {
    case DType::i64: return f(Type<int64_t>{});
    case DType::i32: return f(Type<int32_t>{});
    case DType::u8: return f(Type<uint8_t>{});
    case DType::boolean: return f(Type<bool>{});
    default: return dispatch_floating(op, dtype, static_cast<F&&>(f));
  }
}

// Calls f(Type<T>{}) with an unsigned integer as wide as the dtype: for copies that move bits.
template <class F>
decltype(auto) dispatch_width(DType dtype, F&& f) {
  switch (size_of(dtype)) {
    case 8: return f(Type<uint64_t>{});
    case 4: return f(Type<uint32_t>{});
    case 2: return f(Type<uint16_t>{});
    default: return f(Type<uint8_t>{});
  }
}

}  // namespace binade
