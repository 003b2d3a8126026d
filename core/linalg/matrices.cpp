#include <binade/core/autograd/op.h>
#include <binade/core/linalg/matrices_internal.h>
#include <binade/core/ops.h>
#include <binade/kernels/copy/copy.h>

namespace binade::linalg {

Dims batch_of(const Tensor& a, std::initializer_list<int64_t> more) {
  Dims sizes(std::span(a.sizes().begin(), static_cast<size_t>(a.dim() - 2)));
  for (int64_t size : more) {
    sizes.push_back(size);
  }
  return sizes;
}

void check_matrices(const char* op, const Tensor& a) {
  check(a.defined(), op, ": got an undefined tensor, expected matrices [..., rows, columns]");
  check(is_floating(a.dtype()), op, ": got dtype ", a.dtype(),
        ", expected a floating dtype; convert with to()");
  check(a.dim() >= 2, op, ": got shape ", a.sizes(), ", expected matrices [..., rows, columns]");
}

void check_square(const char* op, const Tensor& a) {
  check_matrices(op, a);
  check(a.size(-1) == a.size(-2), op, ": got shape ", a.sizes(),
        ", expected square matrices [..., n, n]");
}

void check_operands(const char* op, const Tensor& a, const Tensor& b) {
  check_matrices(op, b);
  check(a.dtype() == b.dtype(), op, ": got dtypes ", a.dtype(), " and ", b.dtype(),
        ", expected equal ones; convert one with to()");
  check(a.size(-2) == b.size(-2), op, ": got shapes ", a.sizes(), " and ", b.sizes(),
        ", expected as many rows in both");
  check(can_broadcast(batch_of(a), batch_of(b)), op, ": got shapes ", a.sizes(), " and ", b.sizes(),
        ", expected batches that broadcast");
}

Tensor host_memory(const Dims& sizes, const Tensor& like) {
  return empty(sizes, compute_dtype(like.dtype()));
}

Tensor to_host(const Tensor& x, const Dims& sizes) {
  const Tensor source = to_device(x.detach(), Device{});
  Tensor host = host_memory(sizes, x);
  kernels::copy({.x = source, .y = host});
  return host;
}

Tensor from_host(const Tensor& host, const Tensor& like) {
  const NoGradGuard no_grad;
  return to_device(cast(host, like.dtype()), like.device());
}

host::Batch batch(const Tensor& host) {
  return {host.dtype(), element_count(batch_of(host)), host.size(-2), host.size(-1),
          host.view().data};
}

host::Batch vectors(const Tensor& host) {
  const int64_t n = host.size(-1);
  Dims batch(std::span(host.sizes().begin(), static_cast<size_t>(host.dim() - 1)));
  return {host.dtype(), element_count(batch), n, 1, host.view().data};
}

void check_done(int64_t bad, const char* op, const Dims& batch, const char* what,
                const char* wanted) {
  if (bad == host::kAllDone) {
    return;
  }
  Dims index = batch;
  for (int d = batch.size() - 1; d >= 0; --d) {
    index[d] = bad % batch[d];
    bad /= batch[d];
  }
  fail(op, ": got ", what, batch.empty() ? "" : " at batch index " + to_string(index),
       ", expected ", wanted);
}

Tensor wide(const Tensor& x) { return cast(x, compute_dtype(x.dtype())); }
Tensor narrow_to(const Tensor& gradient, const Tensor& like) {
  return cast(gradient, like.dtype());
}
bool computes_again(const Tensor& x) { return grad_enabled() || is_half(x.dtype()); }
Tensor symmetric(const Tensor& x) { return mul(add(x, mt(x)), 0.5); }

// core/ops/unary.h's reciprocal has no second derivative.
Tensor inverse_elements(const Tensor& x) {
  static constexpr Op kOp{"reciprocal", OpClass::wide_pointwise, true};
  Tensor y = reciprocal(x.detach());
  return kOp.record({x}, y, save(y), [](const Tensor& dy, const Tensor& y) -> Grads {
    return {neg(mul(dy, mul(y, y)))};
  });
}

}  // namespace binade::linalg
