// The vectorised bodies behind kernels/reduce/reduce.h. Internal to the CPU backend.
#pragma once
#include <binade/kernels/base/isa.h>
#include <binade/kernels/base/strided.h>
#include <binade/kernels/reduce/reduce_internal.h>

namespace binade::kernels {

// One partial result for each of up to kColumns outputs. The reduced dimensions, innermost first,
// make a sequence of rows; [begin, end) of it is reduced, in leaves combined pairwise.
struct ReduceTask {
  static constexpr int64_t kColumns = 256;
  const std::byte* x;
  int64_t columns, column_stride;  // strides in bytes
  int dims;
  int64_t size[kMaxDims], stride[kMaxDims];
  int64_t begin, end;  // rows: indices over dimensions 1 ..; if `across`, over all dimensions
  // Vectorised across the columns (the reduced dimensions are outside), or along dimension 0.
  bool across;
  Term term;
  void* partial;  // columns states: values of the accumulator type, or ReduceState of state_dtype()
};

// What the other reducers than sum, product, max and min keep: of terms
//   power_sum    sum
//   deviations   mean, sum of squared deviations, count
//   log_sum_exp  maximum, sum of exp(x - maximum)
//   ties         maximum, how many are equal to it
//   zeros        product of those that are not zero, how many are
template <class C>
struct ReduceState {
  C first, second, third;
};
constexpr bool is_scalar(Reducer reducer) { return reducer <= Reducer::min; }
// The numbers in a state. Squares and means are f64 whatever x is: a square of any f32 number is in
// range, and beside a large mean no digit of the deviations is lost.
constexpr DType state_dtype(Reducer reducer, DType dtype) {
  const bool wide = reducer == Reducer::power_sum || reducer == Reducer::deviations;
  return wide ? DType::f64 : compute_dtype(dtype);
}

// Scalar reducers.
BINADE_ISA_KERNEL(reduce_rows, Reducer reducer, DType dtype, const ReduceTask& task)
// partial[0][i] = all of partial[chunk][i] combined pairwise; `columns` values apart.
BINADE_ISA_KERNEL(reduce_partials, Reducer reducer, DType dtype, void* partial, int64_t chunks,
                  int64_t columns)

// The others, of floating dtypes.
BINADE_ISA_KERNEL(reduce_states, Reducer reducer, DType dtype, const ReduceTask& task)
BINADE_ISA_KERNEL(reduce_state_partials, Reducer reducer, DType dtype, void* partial,
                  int64_t chunks, int64_t columns)

// dx, x, a, b: a tile of a ReduceBackward.
BINADE_ISA_KERNEL(reduce_backward_tile, ReduceSlope op, DType dtype, const StridedTile& tile)

}  // namespace binade::kernels
