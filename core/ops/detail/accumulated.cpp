#include <binade/core/observe/observer.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/accumulated_internal.h>
#include <binade/core/ops/detail/format_internal.h>
#include <binade/core/ops/detail/views_internal.h>
#include <binade/core/precision/precision_rules.h>
#include <binade/core/precision/simulated_formats.h>
#include <binade/core/tensor/create.h>
#include <binade/kernels/formats/formats.h>

namespace binade::detail {
namespace {

// An Accumulation as plain values, which a backward may capture.
struct SumRule {
  kernels::FormatGrid grid;
  Rounding rounding;
  kernels::SumOrder order;
  int64_t chunk;

  explicit SumRule(const Accumulation& sum)
      : grid(sum.format.grid()), rounding(sum.rounding), order(sum.order), chunk(sum.chunk) {}
};

Dims leading_dims(const Tensor& t) {
  return Dims(std::span(t.sizes().begin(), static_cast<size_t>(t.dim() - 2)));
}

// y[m, n] = a[m, k] b[k, n], all row-major.
void accumulate_matrices(const Tensor& a, const Tensor& b, const Tensor& y, const SumRule& sum) {
  constexpr uint64_t kRoundings = 8;  // of a product at most (kernels/formats/formats.h)
  const auto terms = static_cast<uint64_t>(y.numel()) * static_cast<uint64_t>(a.size(1));
  const DrawnRoundings random = draw_roundings(sum.rounding, kRoundings * terms);
  kernels::accumulate_matmul({.a = a,
                              .b = b,
                              .y = y,
                              .grid = sum.grid,
                              .rounding = sum.rounding,
                              .order = sum.order,
                              .chunk = sum.chunk,
                              .seed = random.seed,
                              .offset = random.offset,
                              .advance = random.advance});
}

// The matrices of t, as [count, rows, cols] in row-major order, repeated where the batch is larger.
Tensor all_matrices(const Tensor& t, const Dims& batch) {
  Dims sizes = batch;
  sizes.push_back(t.size(-2));
  sizes.push_back(t.size(-1));
  return contiguous(
      reshape(expand(t.detach(), sizes), {element_count(batch), t.size(-2), t.size(-1)}));
}

// y[.., m, n] = a[.., m, k] b[.., k, n]; y is row-major and has the whole batch.
void accumulate_products(const Tensor& a, const Tensor& b, const Tensor& y, const SumRule& sum) {
  const UnobservedGuard unobserved;
  const Dims batch = leading_dims(y);
  const int64_t count = element_count(batch);
  if (y.numel() == 0) {
    return;
  }
  const Tensor left = all_matrices(a, batch), right = all_matrices(b, batch);
  const Tensor out = reshape(y.detach(), {count, y.size(-2), y.size(-1)});
  const auto matrix = [](const Tensor& t, int64_t i) {
    return reshape(slice(t, 0, i, i + 1), {t.size(1), t.size(2)});
  };
  for (int64_t i = 0; i < count; ++i) {
    accumulate_matrices(matrix(left, i), matrix(right, i), matrix(out, i), sum);
  }
}

// The product in new memory, without recording.
Tensor product_of(const Tensor& a, const Tensor& b, const SumRule& sum) {
  Dims sizes = broadcast_sizes("matmul", leading_dims(a), leading_dims(b));
  sizes.push_back(a.size(-2));
  sizes.push_back(b.size(-1));
  Tensor y = empty(sizes, a.dtype(), a.device());
  accumulate_products(a, b, y, sum);
  return y;
}

// The sum of the rows of dy.
Tensor sum_of_rows(const Tensor& dy, const SumRule& sum) {
  const UnobservedGuard unobserved;
  return reshape(product_of(ones({1, dy.size(0)}, dy.dtype(), dy.device()), dy, sum), {dy.size(1)});
}

Tensor recorded_product(const Op* op, const Tensor& a, const Tensor& b, const SumRule& sum) {
  Tensor y = product_of(a, b, sum);
  return op->record(
      {a, b}, y, save(when(b.requires_grad(), a), when(a.requires_grad(), b)),
      [op, sum](const Tensor& dy, Needs needs, const Tensor& a, const Tensor& b) -> Grads {
        if (grad_enabled()) {  // recorded: da = dy b^T, db = a^T dy as ops
          return {needs[0] ? recorded_product(op, dy, transpose(b, -1, -2), sum) : Tensor(),
                  needs[1] ? recorded_product(op, transpose(a, -1, -2), dy, sum) : Tensor()};
        }
        return {needs[0] ? product_of(dy, transposed(b), sum) : Tensor(),
                needs[1] ? product_of(transposed(a), dy, sum) : Tensor()};
      });
}

}  // namespace

DrawnRoundings draw_roundings(Rounding rounding, uint64_t count) {
  if (rounding != Rounding::stochastic) {
    return {};
  }
  Generator& source = generator();
  return {source.seed, source.take(count), source.advance};
}

const Accumulation* simulated_sum(const Op& op) {
  const PrecisionScope* scope = thread_state.precision;
  const PrecisionRules* rules = scope ? scope->precision.rules.get() : nullptr;
  return rules && rules->formats() ? rules->formats()->sum_of(op, thread_state.label) : nullptr;
}

Tensor accumulated_product(const Op& op, const Tensor& a, const Tensor& b,
                           const Accumulation& sum) {
  return recorded_product(&op, a, b, SumRule(sum));
}

Tensor accumulated_linear(const Op& op, const Tensor& x, const Tensor& w, const Tensor& b,
                          const Accumulation& accumulation) {
  const SumRule sum(accumulation);
  Tensor y = product_of(x, transposed(w), sum);
  if (b.defined()) {
    const UnobservedGuard unobserved;
    y = add(y, b.detach());
  }
  return op.record(
      {x, w, b}, y, save(when(w.requires_grad(), x), when(x.requires_grad(), w)),
      [op = &op, sum](const Tensor& dy, Needs needs, const Tensor& x, const Tensor& w) -> Grads {
        if (grad_enabled()) {  // recorded
          return {needs[0] ? recorded_product(op, dy, w, sum) : Tensor(),
                  needs[1] ? recorded_product(op, transpose(dy, 0, 1), x, sum) : Tensor(),
                  needs[2] ? binade::sum(dy, {0}) : Tensor()};
        }
        return {needs[0] ? product_of(dy, w, sum) : Tensor(),
                needs[1] ? product_of(transposed(dy), x, sum) : Tensor(),
                needs[2] ? sum_of_rows(dy, sum) : Tensor()};
      });
}

void accumulate_elements(const Tensor& x, const Tensor& y, double count, const Accumulation& sum) {
  const UnobservedGuard unobserved;
  Dims order;
  for (const bool summed : {false, true}) {
    for (int d = 0; d < x.dim(); ++d) {
      if ((y.sizes()[d] != x.sizes()[d]) == summed) {
        order.push_back(d);
      }
    }
  }
  const DType wide = x.dtype() == DType::f64 ? DType::f64 : DType::f32;  // before the division
  const int64_t rows = y.numel(), terms = rows == 0 ? 0 : x.numel() / rows;
  const Tensor matrix = reshape(cast(permute(x.detach(), order), wide), {rows, terms});
  const Tensor sums = product_of(matrix, ones({terms, 1}, wide, x.device()), SumRule(sum));
  Tensor(y).copy_(reshape(cast(count == 1 ? sums : div(sums, count), y.dtype()), y.sizes()));
}

}  // namespace binade::detail
