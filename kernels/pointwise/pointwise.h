// Pointwise kernels: y = f(x), y = f(a, b), comparisons, and the gradients of the first two.
//
// Adding an operation is one functor in kernels/pointwise/pointwise_functors.h and one line in a
// list below: enums, launch tables and tests are generated from these lists.
//
// Views may have any strides, inputs may have stride 0, outputs must not overlap themselves. An
// output may be the same memory as an input of the same layout and dtype (in place). Values are
// computed in Compute<T> and rounded once. Errors: dtypes or sizes that do not fit.
#pragma once
#include <binade/kernels/base/kernel.h>

// X(enum name, functor, what the gradient reads: input x or output y). alpha and beta per
// operation:
//   leaky_relu: negative slope   elu: alpha            softplus: beta, threshold
//   clamp, hardtanh: low, high
//   add_scalar, rsub_scalar, mul_scalar, div_scalar, rdiv_scalar, pow_scalar: the number
//   (rsub: number - x, rdiv: number / x)
#define BINADE_UNARY_OPS(X)         \
  X(neg, Neg, input)                \
  X(abs, Abs, input)                \
  X(square, Square, input)          \
  X(sqrt, Sqrt, output)             \
  X(rsqrt, Rsqrt, output)           \
  X(reciprocal, Reciprocal, output) \
  X(exp, Exp, output)               \
  X(log, Log, input)                \
  X(sin, Sin, input)                \
  X(cos, Cos, input)                \
  X(tanh, Tanh, output)             \
  X(sigmoid, Sigmoid, output)       \
  X(relu, Relu, output)             \
  X(leaky_relu, LeakyRelu, input)   \
  X(gelu, Gelu, input)              \
  X(gelu_tanh, GeluTanh, input)     \
  X(silu, Silu, input)              \
  X(softplus, Softplus, input)      \
  X(elu, Elu, input)                \
  X(clamp, Clamp, input)            \
  X(add_scalar, AddScalar, input)   \
  X(rsub_scalar, RsubScalar, input) \
  X(mul_scalar, MulScalar, input)   \
  X(div_scalar, DivScalar, input)   \
  X(rdiv_scalar, RdivScalar, input) \
  X(pow_scalar, PowScalar, input)   \
  X(expm1, Expm1, output)           \
  X(log1p, Log1p, input)            \
  X(sign, Sign, input)              \
  X(hardtanh, Hardtanh, input)      \
  X(erf, Erf, input)                \
  X(hardswish, Hardswish, input)    \
  X(mish, Mish, input)              \
  X(log_sigmoid, LogSigmoid, input)

// X(enum name, functor). The integer dtypes i64 and i32 have all but div and pow.
#define BINADE_BINARY_OPS(X) \
  X(add, Add)                \
  X(sub, Sub)                \
  X(mul, Mul)                \
  X(div, Div)                \
  X(maximum, Maximum)        \
  X(minimum, Minimum)        \
  X(pow, Pow)

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

// Whether UnaryBackward::saved is the forward output y (true) or the input x (false).
constexpr bool backward_uses_output(Unary op) {
  enum Saved : bool { input, output };
#define BINADE_SAVED(name, functor, saved) saved,
  constexpr Saved kSaved[] = {BINADE_UNARY_OPS(BINADE_SAVED)};
#undef BINADE_SAVED
  return kSaved[static_cast<int>(op)] == output;
}

// y = f(x; alpha, beta). x and y: same sizes, same floating dtype.
struct UnaryForward {
  Unary op;
  const View& x;
  const View& y;
  double alpha = 0, beta = 0;
};
BINADE_KERNEL(unary_forward, UnaryForward, y)

// y = f(x) and slope = f'(x) together, for operations whose two formulas share what is costly. On
// the CPU alone: elsewhere memory is what costs, and the slope is one more array of it. x, y,
// slope: f32, same sizes, row-major; y may be x. Errors: other views, other operations.
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
// floating dtype. a and b broadcast; da or db may be kNoView where it is not wanted. Where the
// gradient does not depend on the values (add, sub) a and b are not read and may be kNoView.
struct BinaryBackward {
  Binary op;
  const View& a;
  const View& b;
  const View& dy;
  const View& da;
  const View& db;
};
BINADE_KERNEL(binary_backward, BinaryBackward, dy)

// y = a op b, y boolean; a and b of one dtype (any), broadcast to y's sizes. False with NaN, but
// ne. b may be kNoView: `number`, converted to a's dtype as by Fill, stands there.
struct CompareForward {
  Compare op;
  const View& a;
  const View& b;
  const View& y;
  double number = 0;
};
BINADE_KERNEL(compare_forward, CompareForward, y)

}  // namespace binade::kernels
