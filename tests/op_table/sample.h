// Samples of a row: its inputs, drawn from a seed, in various memory layouts.
#pragma once
#include <binade/kernels/base/math_mode.h>
#include <tests/op_table/op_table.h>

namespace binade::op_table {

enum class Layout : uint8_t {
  contiguous,
  transposed,      // first and last dim swapped
  sliced,          // elements 1, 3, 5, ... of the last dim
  offset,          // starts three rows into the storage
  expanded_first,  // stride 0 in the first dim
  expanded_last,   // stride 0 in the last dim
  channels_last,
};
inline constexpr int kLayoutCount = 7;
const char* to_string(Layout layout);

// True if the layout differs from contiguous for these sizes.
bool applies(Layout layout, const Dims& sizes);
Dims base_sizes(Layout layout, const Dims& sizes);
// The view of a base, by the engine's differentiable shape ops, and its expected values.
Tensor present(Layout layout, const Tensor& base, const Dims& sizes);
Array present(Layout layout, const Array& base, const Dims& sizes);

const Domain& domain_of(const OpRow& row, size_t input);

// Every layout for all inputs, and two mixtures; the first one is contiguous. In f16 and bf16 the
// gradient of an expanded base is a sum of rounded gradients, whose error does not come from the
// op.
std::vector<std::vector<Layout>> layout_choices(const Shapes& shapes, bool expansions = true);

struct Sample {
  Arrays values;  // what the op sees, rounded to the dtypes
  Tensors bases, views;
  std::vector<Layout> layouts;
  uint64_t seed = 0;
  std::string label;  // reproduces the sample: op, shapes, layouts, dtype, seed
};

// Draws all inputs of a row; layout i is for input i. `integers` draws small integers instead of
// values of the domains.
Sample make_sample(const OpRow& row, const Shapes& shapes, const std::vector<Layout>& layouts,
                   DType dtype, uint64_t seed, bool integers = false);

// The same values in another floating dtype, and on another device.
Sample converted(const OpRow& row, const Sample& sample, DType dtype, Device device);
Sample converted(const OpRow& row, const Sample& sample, DType dtype);

// Row-major values of a tensor.
Array to_array(const Tensor& t);
Tensor to_tensor(const Array& values, DType dtype);

// Upstream gradients for some outputs: drawn from the seed, in the outputs' dtypes.
Tensors random_upstream(const Tensors& outputs, uint64_t seed, bool integers = false);

// Sets the row's algorithm and mode until the end of a scope.
class AlgorithmGuard {
 public:
  explicit AlgorithmGuard(const OpRow& row);
  ~AlgorithmGuard();
  AlgorithmGuard(const AlgorithmGuard&) = delete;
  AlgorithmGuard& operator=(const AlgorithmGuard&) = delete;

 private:
  kernels::MathModeGuard mode_;
  std::string_view before_;
};

// Runs forward and backward on fresh leaves with the layouts of the sample. Gradients are those of
// the bases, undefined for inputs that are not floating.
struct Result {
  Tensors outputs, gradients;
};
Result run_with_gradient(const OpRow& row, const Sample& sample, const Tensors& upstream);

// The rows as gtest parameters: indices into op_table(), and a printable unique name.
std::vector<size_t> row_indices(const std::function<bool(const OpRow&)>& wanted);
std::string row_name(size_t index);

bool same_bits(const Tensor& a, const Tensor& b);
std::string to_string(const Shapes& shapes);

}  // namespace binade::op_table
