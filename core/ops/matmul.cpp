// Matrix products: matmul, bmm, addmm, outer. The kernel has one batch dimension with one stride
// per operand; a batch that needs more strides takes several kernel calls. A broadcast is a stride
// of 0 and never a copy.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/accumulated_internal.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/detail/views_internal.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/gemm/gemm.h>

namespace binade {
namespace {

Dims batch_of(const Tensor& t) {
  return Dims(std::span(t.sizes().begin(), static_cast<size_t>(t.dim() - 2)));
}

// Batch dimensions of y = a b; dimensions that have one common stride in all three are joined. [0]
// is the innermost.
struct BatchDims {
  int count = 0;
  int64_t size[kMaxDims], a[kMaxDims], b[kMaxDims], y[kMaxDims];  // strides

  BatchDims(const Tensor& left, const Tensor& right, const Tensor& out) {
    const int rank = out.dim() - 2;
    const auto stride = [rank](const Tensor& t, int d) {
      const int i = d - (rank - (t.dim() - 2));
      return i < 0 || t.sizes()[i] == 1 ? 0 : t.strides()[i];
    };
    for (int d = rank - 1; d >= 0; --d) {
      if (out.sizes()[d] != 1) {
        insert(out.sizes()[d], stride(left, d), stride(right, d), stride(out, d));
      }
    }
  }
  int largest() const {
    int best = 0;
    for (int d = 1; d < count; ++d) {
      best = size[d] > size[best] ? d : best;
    }
    return best;
  }

 private:
  void insert(int64_t n, int64_t sa, int64_t sb, int64_t sy) {
    const int last = count - 1;
    if (count > 0 && sa == a[last] * size[last] && sb == b[last] * size[last] &&
        sy == y[last] * size[last]) {
      size[last] *= n;
      return;
    }
    size[count] = n;
    a[count] = sa;
    b[count] = sb;
    y[count++] = sy;
  }
};

// y[.., m, n] = a[.., m, k] b[.., k, n] of floating tensors whose batch dimensions broadcast to
// those of y.
void batched_gemm(const Tensor& a, const Tensor& b, const Tensor& y) {
  if (y.numel() == 0) {
    return;
  }
  const BatchDims batch(a, b, y);
  const int inner = batch.largest();
  const auto matrices = [&](const Tensor& t, const int64_t* stride) {
    View view = t;
    const Dims all = view.sizes, steps = view.strides;
    const int last = view.dim() - 1;
    view.sizes = {batch.count ? batch.size[inner] : 1, all[last - 1], all[last]};
    view.strides = {batch.count ? stride[inner] : 0, steps[last - 1], steps[last]};
    view.numel = element_count(view.sizes);
    view.contiguous = is_row_major(view.sizes, view.strides);
    return view;
  };
  View av = matrices(a, batch.a), bv = matrices(b, batch.b), yv = matrices(y, batch.y);
  int64_t rounds = 1;
  for (int d = 0; d < batch.count; ++d) {
    rounds *= d == inner ? 1 : batch.size[d];
  }
  const auto width = static_cast<int64_t>(size_of(y.dtype()));
  const View starts[] = {av, bv, yv};
  for (int64_t round = 0; round < rounds; ++round) {
    int64_t rest = round, offset[3] = {0, 0, 0};
    for (int d = 0; d < batch.count; ++d) {
      if (d != inner) {
        const int64_t at = rest % batch.size[d];
        rest /= batch.size[d];
        offset[0] += at * batch.a[d];
        offset[1] += at * batch.b[d];
        offset[2] += at * batch.y[d];
      }
    }
    av.data = starts[0].data + offset[0] * width;
    bv.data = starts[1].data + offset[1] * width;
    yv.data = starts[2].data + offset[2] * width;
    kernels::gemm({.a = av, .b = bv, .y = yv});
  }
}

// The batch sizes of a product; its error shows the full sizes of both operands.
Dims broadcast_batches(const Tensor& a, const Tensor& b) {
  const Dims of_a = batch_of(a), of_b = batch_of(b);
  check(can_broadcast(of_a, of_b), "matmul: got shapes ", a.sizes(), " and ", b.sizes(),
        ", expected batches ", of_a, " and ", of_b,
        " that broadcast (equal sizes or 1, aligned at the last batch dimension)");
  return broadcast_sizes("matmul", of_a, of_b);
}

constexpr Op kMatmul{"matmul", OpClass::contraction, true};

// [.., m, k] [.., k, n] -> [.., m, n] with batches that broadcast. A gradient has the batch of dy;
// the engine sums what was broadcast.
Tensor product(const Tensor& a_, const Tensor& b_) {
  auto [a, b] = kMatmul.enter(a_, b_);
  const Dims batch = broadcast_batches(a, b);
  if (const Accumulation* sum = detail::simulated_sum(kMatmul)) {
    return detail::accumulated_product(kMatmul, a, b, *sum);
  }
  Dims sizes = batch;
  sizes.push_back(a.size(-2));
  sizes.push_back(b.size(-1));
  Tensor y = empty(sizes, a.dtype(), a.device());
  batched_gemm(a, b, y);
  return kMatmul.record(
      {a, b}, y, save(when(b.requires_grad(), a), when(a.requires_grad(), b)),
      [whole_a = batch_of(a) == batch, whole_b = batch_of(b) == batch](
          const Tensor& dy, Needs needs, const Tensor& a, const Tensor& b) -> Grads {
        if (grad_enabled()) {  // recorded: da = dy b^T, db = a^T dy as ops
          return {needs[0] ? product(dy, transpose(b, -1, -2)) : Tensor(),
                  needs[1] ? product(transpose(a, -1, -2), dy) : Tensor()};
        }
        const auto memory = [&](int i, bool whole, int64_t rows, int64_t cols) {
          Dims sizes = batch_of(dy);
          sizes.push_back(rows);
          sizes.push_back(cols);
          return whole ? needs.out(i) : empty(sizes, dy.dtype(), dy.device());
        };
        Tensor da, db;
        if (needs[0]) {
          da = memory(0, whole_a, dy.size(-2), b.size(-2));
          batched_gemm(dy, transposed(b), da);
        }
        if (needs[1]) {
          db = memory(1, whole_b, a.size(-1), dy.size(-1));
          batched_gemm(transposed(a), dy, db);
        }
        return {da, db};
      });
}

// True if all dimensions of t except the last can be viewed as one: its matrices follow each other
// in memory without gaps.
bool is_one_matrix(const Tensor& t) {
  int64_t expected = -1;
  for (int d = t.dim() - 2; d >= 0; --d) {
    if (t.sizes()[d] == 1) {
      continue;
    }
    if (expected >= 0 && t.strides()[d] != expected) {
      return false;
    }
    expected = t.strides()[d] * t.sizes()[d];
  }
  return true;
}

}  // namespace

Tensor matmul(const Tensor& a_, const Tensor& b_) {
  auto [a, b] = kMatmul.enter(a_, b_);
  check_floating("matmul", a, b);
  check(a.dim() >= 1 && b.dim() >= 1, "matmul: got shapes ", a.sizes(), " and ", b.sizes(),
        ", expected at least one dimension each");
  if (a.dim() == 1 || b.dim() == 1) {
    Tensor y = matmul(a.dim() == 1 ? unsqueeze(a, 0) : a, b.dim() == 1 ? unsqueeze(b, 1) : b);
    y = b.dim() == 1 ? squeeze(y, -1) : y;
    return a.dim() == 1 ? squeeze(y, b.dim() == 1 ? -1 : -2) : y;
  }
  check(a.size(-1) == b.size(-2), "matmul: got shapes ", a.sizes(), " and ", b.sizes(),
        ", expected the last size of a to equal the last but one of b; transpose(-2, -1) turns a "
        "matrix");
  if (a.dim() > 2 && b.dim() == 2 && is_one_matrix(a)) {  // one product, and one gradient of b
    Dims sizes = a.sizes();
    sizes[a.dim() - 1] = 1;
    const int64_t rows = element_count(sizes);
    sizes[a.dim() - 1] = b.size(1);
    return reshape(product(reshape(a, {rows, a.size(-1)}), b), sizes);
  }
  return product(a, b);
}

Tensor bmm(const Tensor& a_, const Tensor& b_) {
  check_one_device("bmm", {&a_, &b_});
  auto [a, b] = kMatmul.enter(a_, b_);
  check_floating("bmm", a, b);
  check(a.dim() == 3 && b.dim() == 3 && a.size(0) == b.size(0) && a.size(2) == b.size(1),
        "bmm: got shapes ", a.sizes(), " and ", b.sizes(),
        ", expected [batch, m, k] and [batch, k, n]");
  return product(a, b);
}

Tensor outer(const Tensor& a_, const Tensor& b_) {
  check_one_device("outer", {&a_, &b_});
  auto [a, b] = kMatmul.enter(a_, b_);
  check_floating("outer", a, b);
  check(a.dim() == 1 && b.dim() == 1, "outer: got shapes ", a.sizes(), " and ", b.sizes(),
        ", expected [m] and [n]");
  return product(unsqueeze(a, 1), unsqueeze(b, 0));
}

namespace {

constexpr Op kAddmm{"addmm", OpClass::contraction, true};
constexpr Op kBaddbmm{"baddbmm", OpClass::contraction, true};

Tensor scaled(const Tensor& t, double factor) { return factor == 1 ? t : mul(t, factor); }

// y = beta input + alpha a b by one gemm: a row vector becomes the kernel's bias, any other input
// is first copied to y and then added to. beta and alpha multiply the operands with the fewest
// elements.
Tensor addmm_forward(const Tensor& input, const Tensor& a, const Tensor& b,
                     const AddmmOptions& options) {
  const NoGradGuard guard;
  Dims sizes = a.sizes();
  const int64_t m = a.size(-2), n = b.size(-1);
  sizes[a.dim() - 1] = n;
  const bool a_is_smaller = a.numel() <= b.numel();
  const Tensor left = a_is_smaller ? scaled(a.detach(), options.alpha) : a.detach();
  const Tensor right = a_is_smaller ? b.detach() : scaled(b.detach(), options.alpha);
  Tensor y = empty(sizes, a.dtype(), a.device());
  const bool row =
      input.numel() == n && (input.dim() == 1 || (input.dim() == 2 && m != 1)) && a.dim() == 2;
  if (options.beta == 0) {
    kernels::gemm({.a = left, .b = right, .y = y});
  } else if (row) {
    const Tensor bias = contiguous(scaled(reshape(input.detach(), {n}), options.beta));
    kernels::gemm({.a = left, .b = right, .y = y, .epilogue = {.bias = bias}});
  } else {
    const Tensor start = expand(scaled(input.detach(), options.beta), sizes);
    kernels::copy({.x = start, .y = y});
    kernels::gemm({.a = left, .b = right, .y = y, .epilogue = {.accumulate = true}});
  }
  return y;
}

// addmm of matrices, or baddbmm of batches of them: `rank` dimensions.
Tensor add_product(const Op& op, int rank, const Tensor& input_, const Tensor& a_, const Tensor& b_,
                   const AddmmOptions& options) {
  auto [input, a, b] = op.enter(input_, a_, b_);
  check_floating(op.name, a, b);
  check_floating(op.name, input, a);
  check(a.dim() == rank && b.dim() == rank && a.size(-1) == b.size(-2) &&
            (rank == 2 || a.size(0) == b.size(0)),
        op.name, ": got a of shape ", a.sizes(), " and b of shape ", b.sizes(), ", expected ",
        rank == 2 ? "[m, k] and [k, n]" : "[batch, m, k] and [batch, k, n]");
  Dims sizes = a.sizes();
  sizes[rank - 1] = b.size(-1);
  check(input.dim() <= rank && can_broadcast(input.sizes(), sizes) &&
            broadcast_sizes(op.name, input.sizes(), sizes) == sizes,
        op.name, ": got an input of shape ", input.sizes(), ", expected one that broadcasts to ",
        sizes);
  if (const Accumulation* sum = detail::simulated_sum(op)) {
    const Tensor y = scaled(detail::accumulated_product(op, a, b, *sum), options.alpha);
    return options.beta == 0 ? y : add(y, scaled(input, options.beta));
  }
  Tensor y = addmm_forward(input, a, b, options);
  return op.record(
      {input, a, b}, y, save(when(b.requires_grad(), a), when(a.requires_grad(), b)),
      [options](const Tensor& dy, Needs needs, const Tensor& a, const Tensor& b) -> Grads {
        const Tensor scaled_dy = needs[1] || needs[2] ? scaled(dy, options.alpha) : Tensor();
        const auto gradient = [&](int i, const Tensor& left, const Tensor& right) {
          if (!needs[i]) {
            return Tensor();
          }
          if (grad_enabled()) {
            return i == 1 ? product(left, transpose(right, -1, -2))
                          : product(transpose(left, -1, -2), right);
          }
          Tensor out = needs.out(i);
          kernels::gemm({.a = i == 1 ? left : transposed(left),
                         .b = i == 1 ? transposed(right) : right,
                         .y = out});
          return out;
        };
        return {needs[0] ? scaled(dy, options.beta) : Tensor(), gradient(1, scaled_dy, b),
                gradient(2, a, scaled_dy)};
      });
}

}  // namespace

Tensor addmm(const Tensor& input, const Tensor& a, const Tensor& b, const AddmmOptions& options) {
  return add_product(kAddmm, 2, input, a, b, options);
}

Tensor baddbmm(const Tensor& input, const Tensor& a, const Tensor& b, const AddmmOptions& options) {
  return add_product(kBaddbmm, 3, input, a, b, options);
}

}  // namespace binade
