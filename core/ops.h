// The operations on tensors. Each is defined in core/ops/<family>.cpp, forward and backward
// together, and has a row in tests/op_table. Shapes broadcast as in NumPy. Results have the device
// of the inputs; floating inputs of one op must have one dtype unless a precision policy is in
// force (core/precision/precision.h). Where a dim is an argument, negative values count from the
// end.
#pragma once
#include <binade/core/autograd/autograd.h>
#include <binade/core/ops/attention.h>
#include <binade/core/ops/conv.h>
#include <binade/core/ops/feedforward.h>
#include <binade/core/ops/index.h>
#include <binade/core/ops/interpolate.h>
#include <binade/core/ops/loss.h>
#include <binade/core/ops/matmul.h>
#include <binade/core/ops/norm.h>
#include <binade/core/ops/pointwise.h>
#include <binade/core/ops/rearrange.h>
#include <binade/core/ops/reduce.h>
#include <binade/core/ops/rnn.h>
#include <binade/core/ops/sort.h>
#include <binade/kernels/conv/conv2d.h>
#include <binade/kernels/conv/pool2d.h>

#include <optional>
#include <vector>

namespace binade {

class RankGroup;

// Pointwise, one input
// ------------------------------------------------------------------------------
Tensor neg(const Tensor& x);
Tensor abs(const Tensor& x);
Tensor square(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor reciprocal(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor relu(const Tensor& x);
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
Tensor gelu(const Tensor& x);       // exact, by erf
Tensor gelu_tanh(const Tensor& x);  // the tanh approximation
Tensor silu(const Tensor& x);
Tensor softplus(const Tensor& x, double beta = 1, double threshold = 20);
Tensor elu(const Tensor& x, double alpha = 1);
// One bound may be absent; gradient 1 at the bounds.
Tensor clamp(const Tensor& x, std::optional<double> low, std::optional<double> high = {});
Tensor pow(const Tensor& x, double exponent);
Tensor add(const Tensor& x, double value);
Tensor mul(const Tensor& x, double value);
Tensor div(const Tensor& x, double value);
// Zeroes each element with probability p and scales the others by 1 / (1 - p). Draws from
// generator().
Tensor dropout(const Tensor& x, double p);

// Pointwise, two inputs
// -----------------------------------------------------------------------------
Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);
Tensor pow(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& a, const Tensor& b);  // half the gradient to each at a tie
Tensor minimum(const Tensor& a, const Tensor& b);
Tensor eq(const Tensor& a, const Tensor& b);  // bool, no gradient
Tensor ne(const Tensor& a, const Tensor& b);
Tensor lt(const Tensor& a, const Tensor& b);
Tensor le(const Tensor& a, const Tensor& b);
Tensor gt(const Tensor& a, const Tensor& b);
Tensor ge(const Tensor& a, const Tensor& b);

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator+(const Tensor& a, double b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, double b) { return add(a, -b); }
inline Tensor operator*(const Tensor& a, double b) { return mul(a, b); }
inline Tensor operator*(double a, const Tensor& b) { return mul(b, a); }
inline Tensor operator+(double a, const Tensor& b) { return add(b, a); }
inline Tensor operator/(const Tensor& a, double b) { return div(a, b); }
inline Tensor operator-(const Tensor& a) { return neg(a); }
inline Tensor operator==(const Tensor& a, const Tensor& b) { return eq(a, b); }
inline Tensor operator!=(const Tensor& a, const Tensor& b) { return ne(a, b); }
inline Tensor operator<(const Tensor& a, const Tensor& b) { return lt(a, b); }
inline Tensor operator<=(const Tensor& a, const Tensor& b) { return le(a, b); }
inline Tensor operator>(const Tensor& a, const Tensor& b) { return gt(a, b); }
inline Tensor operator>=(const Tensor& a, const Tensor& b) { return ge(a, b); }

// Reductions. dims empty: all dimensions.
// ------------------------------------------------------------
Tensor sum(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor mean(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
Tensor softmax(const Tensor& x, int dim = -1);
Tensor log_softmax(const Tensor& x, int dim = -1);

// Contractions (more: core/ops/matmul.h)
// --------------------------------------------------------------------------------------------
// activation(x weight^T + bias): x [..., in], weight [out, in], bias [out] or undefined. relu takes
// no pass of its own, but while an observer looks or where a precision policy has rules or casts.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              kernels::Activation activation = kernels::Activation::none);
// activation(x * weight + bias), relu as above: x [N, C, H, W], weight [O, C / groups, R, S], bias
// [O] or undefined -> [N, O, P, Q], channels-last.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const kernels::Conv2dGeometry& geometry = {},
              kernels::Activation activation = kernels::Activation::none);

// Pooling, x [N, C, H, W]
// ----------------------------------------------------------------------------
Tensor max_pool2d(const Tensor& x, const kernels::Pool2dGeometry& geometry);
Tensor avg_pool2d(const Tensor& x, const kernels::Pool2dGeometry& geometry);
Tensor adaptive_avg_pool2d(const Tensor& x, int64_t height, int64_t width);

// Normalisation
// --------------------------------------------------------------------------------------
struct BatchNormOptions {
  bool training = true;
  double momentum = 0.1;
  double eps = 1e-5;
  // In training the batch is that of all ranks together, of whatever sizes; forward and backward
  // are collective. Null: this rank's. It outlives the graph.
  RankGroup* group = nullptr;
  // In the same pass: relu(y + residual). residual is like x or undefined.
  Tensor residual = {};
  bool relu = false;
};
// x [N, C, ...]; weight and bias [C] or undefined. In training normalises by the batch (biased
// variance) and updates running_mean and running_var [C] in place (unbiased variance), if defined;
// else normalises by them.
Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                  const Tensor& running_mean, const Tensor& running_var,
                  const BatchNormOptions& options = {});

// Shape
// ----------------------------------------------------------------------------------------------
Tensor reshape(const Tensor& x, const Dims& sizes);  // one size may be -1; a view where it can be
Tensor flatten(const Tensor& x, int first = 0, int last = -1);
Tensor transpose(const Tensor& x, int i, int j);     // a view
Tensor permute(const Tensor& x, const Dims& order);  // a view
Tensor expand(const Tensor& x, const Dims& sizes);   // a view with stride 0; -1 keeps a size
Tensor slice(const Tensor& x, int dim, int64_t start, int64_t end, int64_t step = 1);  // a view
Tensor select(const Tensor& x, int dim, int64_t index);                                // a view
Tensor unsqueeze(const Tensor& x, int dim);
Tensor squeeze(const Tensor& x, int dim);
Tensor cat(const std::vector<Tensor>& parts, int dim = 0);
Tensor stack(const std::vector<Tensor>& parts, int dim = 0);
std::vector<Tensor> split(const Tensor& x, int64_t size, int dim = 0);  // views
Tensor to_device(const Tensor& x, Device device);
Tensor cast(const Tensor& x, DType dtype);
Tensor contiguous(const Tensor& x);     // x itself where it is row-major
Tensor channels_last(const Tensor& x);  // [N, C, ...] with C innermost; x itself where it is

// Sums gradient g down to `sizes`, undoing a broadcast; into `out` if it is defined.
Tensor sum_to(const Tensor& g, const Dims& sizes, const Tensor& out = {});

}  // namespace binade
