// Helpers that the ops of core/linalg share: checks, copies between a tensor and host batches, and
// the dtypes of backward formulas.
#pragma once
#include <binade/core/linalg/host_internal.h>
#include <binade/core/tensor/tensor.h>

namespace binade::linalg {

// Sizes of the batch, [...] of [..., rows, columns]; with more dimensions appended.
Dims batch_of(const Tensor& a, std::initializer_list<int64_t> more = {});

void check_matrices(const char* op, const Tensor& a);
void check_square(const char* op, const Tensor& a);
// The checks of a and b [..., rows, k] where a has `rows` rows or, on the right, columns.
void check_operands(const char* op, const Tensor& a, const Tensor& b);

// x as row-major host memory of its compute dtype, broadcast to `sizes`: always a copy.
Tensor to_host(const Tensor& x, const Dims& sizes);
inline Tensor to_host(const Tensor& x) { return to_host(x, x.sizes()); }
// A new host tensor of the compute dtype of `like`.
Tensor host_memory(const Dims& sizes, const Tensor& like);
// The host tensor with the device and the dtype of `like`.
Tensor from_host(const Tensor& host, const Tensor& like);
host::Batch batch(const Tensor& host);
// The same, where each element of the last dimension is a matrix [n, 1].
host::Batch vectors(const Tensor& host);
// A batch without memory, passed for a result that is not wanted.
inline host::Batch nothing(const Tensor& like) { return {like.dtype(), 0, 0, 0, nullptr}; }

// Throws "op: got `what` at batch index [..], expected `wanted`" if a matrix is bad.
void check_done(int64_t bad, const char* op, const Dims& batch, const char* what,
                const char* wanted);

// Formulas of backward run in the compute dtype; both are differentiable.
Tensor wide(const Tensor& x);
Tensor narrow_to(const Tensor& gradient, const Tensor& like);
inline Tensor mt(const Tensor& x) { return x.transpose(-1, -2); }
// True if a backward must compute the results again: it is recorded itself, so they need their
// history, or the saved ones are rounded to 16 bits.
bool computes_again(const Tensor& x);
// (x + x^T) / 2
Tensor symmetric(const Tensor& x);
// 1 / x, differentiable again.
Tensor inverse_elements(const Tensor& x);

}  // namespace binade::linalg
