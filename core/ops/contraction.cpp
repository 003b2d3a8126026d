// Matrix products. Operands are views: a transpose is swapped strides, never a
// copy.
#include <binade/core/ops.h>
#include <binade/core/ops/bias_gradient.h>
#include <binade/kernels/gemm.h>

namespace binade {
namespace {

// [.., m, n] as [.., n, m], without recording.
Tensor flipped(const Tensor& t) {
  Dims sizes = t.sizes(), strides = t.strides();
  const int last = t.dim() - 1;
  std::swap(sizes[last], sizes[last - 1]);
  std::swap(strides[last], strides[last - 1]);
  return make_view(t, sizes, strides);
}

void check_floating(const char* op, const Tensor& a, const Tensor& b) {
  check(a.defined() && b.defined(), op, ": got an undefined tensor");
  check(is_floating(a.dtype()) && a.dtype() == b.dtype(), op, ": got dtypes ", a.dtype(), " and ",
        b.dtype(), ", expected one floating dtype; convert one with to()");
}

constexpr Op kMatmul{"matmul", OpClass::contraction, true};

// [m, k] [k, n] -> [m, n], or with equal leading batch [b, m, k] [b, k, n] -> [b, m, n].
Tensor product(const Tensor& a_, const Tensor& b_) {
  auto [a, b] = kMatmul.enter(a_, b_);
  const int last = a.dim() - 1;
  Dims sizes = a.sizes();
  sizes[last] = b.sizes()[last];
  Tensor y = empty(sizes, a.dtype(), a.device());
  kernels::gemm({.a = a, .b = b, .y = y});
  return kMatmul.record(
      {a, b}, y, save(when(b.requires_grad(), a), when(a.requires_grad(), b)),
      [](const Tensor& dy, Needs needs, const Tensor& a, const Tensor& b) -> Grads {
        if (grad_enabled()) {  // recorded: da = dy b^T, db = a^T dy as ops
          return {needs[0] ? product(dy, transpose(b, -1, -2)) : Tensor(),
                  needs[1] ? product(transpose(a, -1, -2), dy) : Tensor()};
        }
        Tensor da = needs.out(0), db = needs.out(1);
        if (da.defined()) {
          kernels::gemm({.a = dy, .b = flipped(b), .y = da});
        }
        if (db.defined()) {
          kernels::gemm({.a = flipped(a), .b = dy, .y = db});
        }
        return {da, db};
      });
}

}  // namespace

Tensor matmul(const Tensor& a,
              const Tensor& b) {  // torch.matmul: vectors, matrices, broadcast batches
  check_floating("matmul", a, b);
  check(a.dim() >= 1 && b.dim() >= 1, "matmul: got shapes ", a.sizes(), " and ", b.sizes(),
        ", expected at least one dimension each");
  if (a.dim() == 1 || b.dim() == 1) {
    Tensor y = matmul(a.dim() == 1 ? unsqueeze(a, 0) : a, b.dim() == 1 ? unsqueeze(b, 1) : b);
    y = b.dim() == 1 ? squeeze(y, -1) : y;
    return a.dim() == 1 ? squeeze(y, b.dim() == 1 ? -1 : -2) : y;
  }
  const int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1);
  check(k == b.size(-2), "matmul: got shapes ", a.sizes(), " and ", b.sizes(),
        ", expected the last size of a to equal the last but one of b");
  if (a.dim() == 2 && b.dim() == 2) {
    return product(a, b);
  }
  auto lead = [](const Tensor& t) {
    return Dims(std::span(t.sizes().begin(), static_cast<size_t>(t.dim() - 2)));
  };
  Dims batch = broadcast_sizes("matmul", lead(a), lead(b));
  const int64_t count = element_count(batch);
  auto as_batches = [&](const Tensor& t, int64_t rows, int64_t cols) {
    Dims sizes = batch;
    sizes.push_back(rows);
    sizes.push_back(cols);
    return reshape(expand(t, sizes), {count, rows, cols});
  };
  Tensor y = product(as_batches(a, m, k), as_batches(b, k, n));
  batch.push_back(m);
  batch.push_back(n);
  return reshape(y, batch);
}

Tensor linear(const Tensor& x_, const Tensor& weight_, const Tensor& bias_) {  // y = x w^T + b
  static constexpr Op kOp{"linear", OpClass::contraction};
  auto [x, w, b] = kOp.enter(x_, weight_, bias_);
  check_floating("linear", x, w);
  check(x.dim() >= 1 && w.dim() == 2 && x.size(-1) == w.size(1), "linear: got x of shape ",
        x.sizes(), " and weight of shape ", w.sizes(), ", expected [..., in] and [out, in]");
  check(!b.defined() || (b.dim() == 1 && b.size(0) == w.size(0) && b.dtype() == w.dtype()),
        "linear: got a bias that is not [", w.size(0), "] of dtype ", w.dtype());
  if (x.dim() != 2) {
    Dims sizes = x.sizes();
    sizes[x.dim() - 1] = 1;
    const int64_t rows = element_count(sizes, "linear");
    sizes[x.dim() - 1] = w.size(0);
    return reshape(linear(reshape(x, {rows, x.size(-1)}), w, b), sizes);
  }
  Tensor y = empty({x.size(0), w.size(0)}, x.dtype(), x.device());
  kernels::gemm({.a = x, .b = flipped(w), .y = y, .bias = b});
  return kOp.record({x, w, b}, y, save(when(w.requires_grad(), x), when(x.requires_grad(), w)),
                    [](const Tensor& dy, Needs needs, const Tensor& x, const Tensor& w) -> Grads {
                      Tensor dx = needs.out(0), dw = needs.out(1);
                      if (dx.defined()) {  // dx = dy w
                        kernels::gemm({.a = dy, .b = w, .y = dx});
                      }
                      if (dw.defined()) {  // dw = dy^T x
                        kernels::gemm({.a = flipped(dy), .b = x, .y = dw});
                      }
                      return {dx, dw, bias_gradient(dy, 1, needs, 2)};
                    });
}

}  // namespace binade
