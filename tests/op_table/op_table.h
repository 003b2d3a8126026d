// The op table: one row per op of core/ops.h and set of attributes, in one file per family. The
// drivers (*_test.cpp) run every row: forward, gradient, dtypes, exactness, bounds, repeatability,
// errors. A row says what the op computes (reference), on which shapes, and how exact it must be.
#pragma once
#include <binade/core/ops.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <tests/op_table/array.h>

namespace binade::op_table {

using Tensors = std::vector<Tensor>;
using Shapes = std::vector<Dims>;  // the sizes of each input

// The distribution of an input: uniform in [low, high], at least `gap` from the points in `avoid`
// (kinks and poles of the op).
struct Domain {
  double low = -2, high = 2;
  std::vector<double> avoid = {};
  double gap = 0.3;
  bool whole = false;  // rounded to integers, plus `shift`
  double shift = 0;
  bool distinct = false;   // all values differ, also in half precision: multiples of 1/32
  int64_t classes = 0;     // not 0: i64 in [0, classes)
  bool statistic = false;  // f32 where the first input is f16 or bf16
  bool fixed = false;      // never differentiated
  bool mask = false;       // bool
  bool divisor = false;    // not 0 in an integer dtype
};

enum class Accuracy : uint8_t {
  exact,  // the reference, rounded to the dtype
  ulps,   // relative to each element: `ulps` units in f32 and f64, one in f16 and bf16
  sums,   // relative to the largest element: the tolerance of the parity cases
};

struct ErrorCase {
  std::string what;
  std::function<void()> run;  // must throw an Error that names the op
};

struct OpRow {
  std::string name;             // as declared in core/ops.h
  std::string attributes = "";  // for messages
  bool number = false;          // the overload that takes a number as second argument
  std::vector<Shapes> shapes;
  std::vector<Domain> domains = {{}};  // of each input; the last one repeats
  std::function<Tensors(const Tensors&)> function;
  std::function<Arrays(const Arrays&)> reference;
  Accuracy accuracy = Accuracy::exact;
  double ulps = 4;
  double floor = 0;  // ulps are of max(|reference|, floor), for functions that cross 0
  bool differentiable = true;
  bool any_dtype = false;  // also i64, i32, u8 and bool
  bool many_zeros = false;
  bool wide_output = false;                // f32 results from f16 and bf16 inputs
  std::optional<DType> output_dtype = {};  // where it is not that of the inputs
  size_t outputs_with_gradient = 8;        // only the first ones get an upstream gradient
  // For contractions: the number of products in the sum of one output element. Adds the
  // integer-exact and error-bound tests.
  std::function<int64_t(const Shapes&)> depth = {};
  std::vector<Shapes> exact_shapes = {};
  // Set if another algorithm than the plain sum computes the results: its provider
  // (conv2d_provider.h), and the factor by which its transforms can amplify the terms of a sum and
  // their rounding errors.
  const char* algorithm = nullptr;
  bool fast = false;  // runs in mode fast (math_mode.h), all other rows in precise
  double amplification = 1;
  Shapes large = {};  // enough work for several threads
  // The sizes that bench/op_bench times, if not `large`, and the domains of these inputs.
  Shapes timed = {};
  std::vector<Domain> timed_domains = {};
  // Operations of one forward, if neither those of `depth` nor one per element.
  std::function<double(const Shapes&)> flops = {};
  std::vector<ErrorCase> errors = {};
};

// The shapes, with the first dimension of the first input extended until the input has 2^20
// elements.
inline Shapes lengthened(Shapes shapes) {
  Dims& first = shapes[0];
  if (first.size() > 0 && element_count(first) > 0) {
    first[0] *= std::max<int64_t>(1, (int64_t{1} << 20) / element_count(first));
  }
  return shapes;
}

std::vector<OpRow> pointwise_rows();
std::vector<OpRow> activation_rows();
std::vector<OpRow> selection_rows();
std::vector<OpRow> reduce_rows();
std::vector<OpRow> statistics_rows();
std::vector<OpRow> sort_rows();
std::vector<OpRow> search_rows();
std::vector<OpRow> covariance_rows();
std::vector<OpRow> window_rows();
std::vector<OpRow> margin_loss_rows();
std::vector<OpRow> contraction_rows();
std::vector<OpRow> conv_rows();
std::vector<OpRow> pool_rows();
std::vector<OpRow> norm_rows();
std::vector<OpRow> group_norm_rows();
std::vector<OpRow> loss_rows();
std::vector<OpRow> pointwise_loss_rows();
std::vector<OpRow> class_loss_rows();
std::vector<OpRow> matmul_rows();
std::vector<OpRow> shape_rows();
std::vector<OpRow> join_rows();
std::vector<OpRow> rearrange_rows();
std::vector<OpRow> index_rows();
std::vector<OpRow> embedding_bag_rows();
std::vector<OpRow> advanced_index_rows();
std::vector<OpRow> arrange_rows();
std::vector<OpRow> random_rows();
std::vector<OpRow> format_rows();
std::vector<OpRow> interpolate_rows();
std::vector<OpRow> grid_sample_rows();
std::vector<OpRow> attention_rows();
std::vector<OpRow> rnn_rows();
std::vector<OpRow> linalg_rows();  // none in a build without Eigen

// All rows, in a fixed order.
const std::vector<OpRow>& op_table();

}  // namespace binade::op_table
