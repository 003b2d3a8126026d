// Pointwise kernels: y = f(x), y = f(a, b), comparisons, and the gradients of the first two.
//
// A row of a list below defines an operation, except for its formulas (pointwise_functors.h,
// binary_functors.h): enums, launch tables, the public ops and their classes follow from it.
//
// Views may have any strides, inputs may have stride 0, outputs must not overlap themselves. An
// output may be the same memory as an input of the same layout and dtype (in place). Values are
// computed in Compute<T> and rounded once. Errors: dtypes or sizes that do not fit.
#pragma once
#include <binade/kernels/base/kernel.h>

// The backslashes stay where they are when a longer row is added.
// clang-format off

// Operations of one input. The columns of a row:
//   name      of the operation, of its op, and in parity cases
//   functor   in pointwise_functors.h
//   saved     what the gradient reads: the input x or the output y
//   code      much if the formula is longer than one exp or log, else little: how many elements
//             a CUDA thread has in flight (unary_unroll_internal.h)
//   class     decides the op's dtype under a precision policy. wide_pointwise: the result grows
//             faster than products (exp, pow, 1/x), or is a logarithm. Else pointwise, whatever the
//             formula calls: elu takes exp of negative numbers only
//   option    PyTorch's name of the number that the op takes
//
// Tensor name(const Tensor& x), defined by core/ops/unary.cpp.
#define BINADE_UNARY_PLAIN_OPS(X)                                             \
  X(abs, Abs, input, little, pointwise)                                       \
  X(square, Square, input, little, pointwise)                                 \
  X(sqrt, Sqrt, output, little, pointwise)                                    \
  X(rsqrt, Rsqrt, output, little, wide_pointwise)                             \
  X(reciprocal, Reciprocal, output, little, wide_pointwise)                   \
  X(exp, Exp, output, little, wide_pointwise)                                 \
  X(expm1, Expm1, output, much, wide_pointwise)                               \
  X(exp2, Exp2, output, much, wide_pointwise)                                 \
  X(log, Log, input, little, wide_pointwise)                                  \
  X(log1p, Log1p, input, much, wide_pointwise)                                \
  X(log2, Log2, input, much, wide_pointwise)                                  \
  X(sin, Sin, input, much, pointwise)                                         \
  X(cos, Cos, input, much, pointwise)                                         \
  X(tan, Tan, output, much, wide_pointwise)                                   \
  X(asin, Asin, input, much, pointwise)                                       \
  X(acos, Acos, input, much, pointwise)                                       \
  X(atan, Atan, input, much, pointwise)                                       \
  X(sinh, Sinh, input, much, wide_pointwise)                                  \
  X(cosh, Cosh, input, much, wide_pointwise)                                  \
  X(tanh, Tanh, output, much, pointwise)                                      \
  X(erf, Erf, input, much, pointwise)                                         \
  X(sign, Sign, input, little, pointwise)                                     \
  X(floor, Floor, input, little, pointwise)                                   \
  X(ceil, Ceil, input, little, pointwise)                                     \
  X(round, Round, input, little, pointwise)                                   \
  X(trunc, Trunc, input, little, pointwise)                                   \
  X(frac, Frac, input, little, pointwise)                                     \
  X(sigmoid, Sigmoid, output, little, pointwise)                              \
  X(log_sigmoid, LogSigmoid, input, much, wide_pointwise)                     \
  X(relu, Relu, output, little, pointwise)                                    \
  X(gelu, Gelu, input, much, pointwise)                                       \
  X(gelu_tanh, GeluTanh, input, much, pointwise)                              \
  X(silu, Silu, input, much, pointwise)                                       \
  X(selu, Selu, input, much, pointwise)                                       \
  X(mish, Mish, input, much, pointwise)                                       \
  X(softsign, Softsign, input, little, pointwise)                             \
  X(hardsigmoid, Hardsigmoid, input, little, pointwise)                       \
  X(hardswish, Hardswish, input, little, pointwise)

// Tensor name(const Tensor& x, double option), defined by core/ops/unary.cpp.
#define BINADE_UNARY_OPTION_OPS(X)                                            \
  X(leaky_relu, LeakyRelu, input, little, pointwise, negative_slope)          \
  X(celu, Celu, input, much, pointwise, alpha)                                \
  X(elu, Elu, input, much, pointwise, alpha)

// Used by ops that core/ops/unary.cpp writes out. alpha and beta:
//   softplus: beta, threshold   clamp, hardtanh: low, high   others: the number (rsub: number - x)
#define BINADE_UNARY_OTHER_OPS(X)                                             \
  X(neg, Neg, input, little)                                                  \
  X(softplus, Softplus, input, much)                                          \
  X(clamp, Clamp, input, little)                                              \
  X(hardtanh, Hardtanh, input, little)                                        \
  X(add_scalar, AddScalar, input, little)                                     \
  X(rsub_scalar, RsubScalar, input, little)                                   \
  X(mul_scalar, MulScalar, input, little)                                     \
  X(div_scalar, DivScalar, input, little)                                     \
  X(rdiv_scalar, RdivScalar, input, little)                                   \
  X(pow_scalar, PowScalar, input, much)

#define BINADE_UNARY_OPS(X)                                                   \
  BINADE_UNARY_PLAIN_OPS(X)                                                   \
  BINADE_UNARY_OPTION_OPS(X)                                                  \
  BINADE_UNARY_OTHER_OPS(X)

// Operations of two inputs: name, functor, dtypes (any: also i64, i32, u8; else floating), class.
//
// Tensor name(const Tensor& a, const Tensor& b), defined by core/ops/binary.cpp.
#define BINADE_BINARY_PLAIN_OPS(X)                                            \
  X(div, Div, floating, pointwise)                                            \
  X(pow, Pow, any, wide_pointwise)                                            \
  X(atan2, Atan2, floating, pointwise)                                        \
  X(logaddexp, Logaddexp, floating, wide_pointwise)                           \
  X(maximum, Maximum, any, pointwise)                                         \
  X(minimum, Minimum, any, pointwise)                                         \
  X(floor_divide, FloorDivide, any, pointwise)                                \
  X(remainder, Remainder, any, pointwise)                                     \
  X(fmod, Fmod, any, pointwise)

// Used by ops that core/ops/binary.cpp writes out.
#define BINADE_BINARY_OTHER_OPS(X)                                            \
  X(add, Add, any)                                                            \
  X(sub, Sub, any)                                                            \
  X(mul, Mul, any)

#define BINADE_BINARY_OPS(X)                                                  \
  BINADE_BINARY_PLAIN_OPS(X)                                                  \
  BINADE_BINARY_OTHER_OPS(X)

// clang-format on

#define BINADE_COMPARE_OPS(X) \
  X(eq, ==)                   \
  X(ne, !=)                   \
  X(lt, <)                    \
  X(le, <=)                   \
  X(gt, >)                    \
  X(ge, >=)

namespace binade::kernels {

#define BINADE_ENUM(name, ...) name,
enum class Unary : uint8_t { BINADE_UNARY_OPS(BINADE_ENUM) };
enum class Binary : uint8_t { BINADE_BINARY_OPS(BINADE_ENUM) };
enum class Compare : uint8_t { BINADE_COMPARE_OPS(BINADE_ENUM) };
#undef BINADE_ENUM

#define BINADE_NAME(name, ...) #name,
inline constexpr const char* kUnaryName[] = {BINADE_UNARY_OPS(BINADE_NAME)};
inline constexpr const char* kBinaryName[] = {BINADE_BINARY_OPS(BINADE_NAME)};
inline constexpr const char* kCompareName[] = {BINADE_COMPARE_OPS(BINADE_NAME)};
#undef BINADE_NAME
inline constexpr int kUnaryCount = sizeof kUnaryName / sizeof *kUnaryName;
inline constexpr int kBinaryCount = sizeof kBinaryName / sizeof *kBinaryName;
inline constexpr int kCompareCount = sizeof kCompareName / sizeof *kCompareName;
constexpr const char* to_string(Unary op) { return kUnaryName[static_cast<int>(op)]; }
constexpr const char* to_string(Binary op) { return kBinaryName[static_cast<int>(op)]; }
constexpr const char* to_string(Compare op) { return kCompareName[static_cast<int>(op)]; }

// Columns of the lists. In a function, a table would be copied to the stack for every call.
namespace column {
enum Saved : bool { input, output };
#define BINADE_SAVED(name, functor, saved, ...) saved,
inline constexpr Saved kSaved[] = {BINADE_UNARY_OPS(BINADE_SAVED)};
#undef BINADE_SAVED
enum DTypes : bool { floating, any };
#define BINADE_DTYPES(name, functor, dtypes, ...) dtypes,
inline constexpr DTypes kDTypes[] = {BINADE_BINARY_OPS(BINADE_DTYPES)};
#undef BINADE_DTYPES
}  // namespace column

// True if UnaryBackward::saved is the forward output y, false if it is the input x.
constexpr bool backward_uses_output(Unary op) {
  return column::kSaved[static_cast<int>(op)] == column::output;
}

// True if the operation takes i64, i32 and u8 too.
constexpr bool takes_integers(Binary op) {
  return column::kDTypes[static_cast<int>(op)] == column::any;
}

// y = f(x; alpha, beta). x and y: same sizes, same floating dtype.
struct UnaryForward {
  Unary op;
  const View& x;
  const View& y;
  double alpha = 0, beta = 0;
};
BINADE_KERNEL(unary_forward, UnaryForward, y)

// y = f(x) and slope = f'(x) together, for operations whose two formulas share the costly part. CPU
// only: on a GPU the time goes to memory, and the slope is one more array. x, y, slope: f32, same
// sizes, row-major; y may be x. Errors: other views, other operations.
constexpr bool has_slope(Unary op) { return op == Unary::gelu || op == Unary::gelu_tanh; }
struct UnaryForwardSlope {
  Unary op;  // has_slope
  const View& x;
  const View& y;
  const View& slope;
};
namespace cpu {
void unary_forward_slope(const UnaryForwardSlope& a);
}

// dx = dy * f'(x). saved, dy, dx: same sizes, same floating dtype.
struct UnaryBackward {
  Unary op;
  const View& saved;
  const View& dy;
  const View& dx;
  double alpha = 0, beta = 0;
};
BINADE_KERNEL(unary_backward, UnaryBackward, dx)

// y = f(a, b), one dtype. a and b broadcast to y's sizes, aligned at the last dimension.
struct BinaryForward {
  Binary op;
  const View& a;
  const View& b;
  const View& y;
};
BINADE_KERNEL(binary_forward, BinaryForward, y)

// da = dy * df/da, db = dy * df/db, in dy's sizes (broadcasts are summed away by the caller), one
// floating dtype. a and b broadcast; da or db may be kNoView if it is not wanted. If the gradient
// does not depend on the values (add, sub), a and b are not read and may be kNoView.
struct BinaryBackward {
  Binary op;
  const View& a;
  const View& b;
  const View& dy;
  const View& da;
  const View& db;
};
BINADE_KERNEL(binary_backward, BinaryBackward, dy)

// y = a op b, y boolean; a and b of one dtype (any), broadcast to y's sizes. A comparison with NaN
// is false, except ne. If b is kNoView, `number` takes its place, converted to a's dtype as by
// Fill.
struct CompareForward {
  Compare op;
  const View& a;
  const View& b;
  const View& y;
  double number = 0;
};
BINADE_KERNEL(compare_forward, CompareForward, y)

}  // namespace binade::kernels
