// The vectorised loops of kernels/reduce/reduce.h. Internal to the CPU backend.
#pragma once
#include <binade/kernels/base/isa.h>
#include <binade/kernels/base/strided.h>
#include <binade/kernels/reduce/reduce_internal.h>

namespace binade::kernels {

// One partial result for each of up to kColumns outputs. The reduced dimensions, innermost first,
// form a sequence of rows; [begin, end) of it is reduced, in leaves that are combined pairwise.
struct ReduceTask {
  static constexpr int64_t kColumns = 256;
  const std::byte* x;
  int64_t columns, column_stride;  // strides in bytes
  int dims;
  int64_t size[kMaxDims], stride[kMaxDims];
  int64_t begin, end;  // rows: indices over dimensions 1 ..; if `across`, over all dimensions
  // True: vectorised across the columns (reduced dimensions are outside); false: along dimension 0.
  bool across;
  Term term;
  void* partial;  // columns states: values of the accumulator type, or ReduceState of state_dtype()
};

// The state of the reducers other than sum, product, max and min:
//   power_sum    sum
//   deviations   mean, sum of squared deviations, count
//   log_sum_exp  maximum, sum of exp(x - maximum)
//   ties         maximum, number of terms equal to it
//   zeros        product of the nonzero terms, number of zeros
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

// Reducers whose state is one value.
BINADE_ISA_KERNEL(reduce_rows, Reducer reducer, DType dtype, const ReduceTask& task)
// partial[0][i] = all partial[chunk][i] combined pairwise; rows are `columns` values apart.
BINADE_ISA_KERNEL(reduce_partials, Reducer reducer, DType dtype, void* partial, int64_t chunks,
                  int64_t columns)

// The other reducers, for floating dtypes.
BINADE_ISA_KERNEL(reduce_states, Reducer reducer, DType dtype, const ReduceTask& task)
BINADE_ISA_KERNEL(reduce_state_partials, Reducer reducer, DType dtype, void* partial,
                  int64_t chunks, int64_t columns)

// A tile of a ReduceBackward with operands dx, x, a, b.
BINADE_ISA_KERNEL(reduce_backward_tile, ReduceSlope op, DType dtype, const StridedTile& tile)

}  // namespace binade::kernels
