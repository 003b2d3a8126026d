// The forward is a kernel; the gradients are made of ops.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>
#include <binade/core/ops/detail/embedding_bag_internal.h>
#include <binade/core/ops/detail/rows_internal.h>
#include <binade/core/tensor/create.h>

namespace binade {
namespace {

using kernels::kNoExemption;

constexpr Op kEmbeddingBag{"embedding_bag", OpClass::movement, true};

void check_integers(const char* what, const Tensor& t) {
  check_defined(kEmbeddingBag.name, t);
  check(t.dtype() == DType::i64, kEmbeddingBag.name, ": got ", what, " of dtype ", t.dtype(),
        ", expected i64; convert it with to()");
}

// Where the bags begin and end: i64 [bags + 1].
Tensor bag_limits(const Tensor& index, const Tensor& offsets, bool include_last_offset) {
  const char* op = kEmbeddingBag.name;
  if (index.dim() == 2) {
    check(!offsets.defined(), op, ": got an index of shape ", index.sizes(),
          " and offsets, expected none of a matrix, whose rows are the bags; or flatten it");
    return mul(arange(index.size(0) + 1, DType::i64, index.device()), double(index.size(1)));
  }
  check(index.dim() == 1, op, ": got an index of shape ", index.sizes(),
        ", expected [bags, n], or [n] and offsets");
  check(offsets.defined(), op, ": got an index of shape ", index.sizes(),
        " without offsets, expected those at which the bags begin");
  check_integers("offsets", offsets);
  check(offsets.dim() == 1 && offsets.numel() >= (include_last_offset ? 1 : 0), op,
        ": got offsets of shape ", offsets.sizes(), ", expected [bags",
        include_last_offset ? " + 1]" : "]");
  const bool no_bags = offsets.numel() == (include_last_offset ? 1 : 0);
  check(!no_bags || index.numel() == 0, op, ": got ", index.numel(),
        " indices and no bag, expected an offset for each bag");
  if (include_last_offset) {
    return contiguous(offsets);
  }
  return cat({offsets, full({1}, double(index.numel()), DType::i64, index.device())}, 0);
}

// The number of the bag of each of n entries.
Tensor bags_of(const Tensor& limits, int64_t n) {
  return add(searchsorted(limits, arange(n, DType::i64, limits.device()), true), -1.0);
}

// dy by the number of entries that take part in each bag.
Tensor shares_of(const Tensor& dy, const Tensor& bags, const Tensor& index, int64_t exempt) {
  const DType wide = compute_dtype(dy.dtype());
  const Tensor taking =
      exempt == kNoExemption ? ones_like(index) : cast(ne(index, double(exempt)), DType::i64);
  const Tensor none = zeros({dy.size(0)}, DType::i64, dy.device());
  const Tensor counts = clamp(cast(index_add(none, 0, bags, taking), wide), 1, std::nullopt);
  return cast(div(cast(dy, wide), unsqueeze(counts, 1)), dy.dtype());
}

// The gradient of a maximum goes to the rows that were chosen, -1 of an empty bag.
Tensor give_to_chosen(const Tensor& dy, const Tensor& chosen, const Dims& sizes) {
  if (sizes[0] == 0) {  // then all bags are empty
    return zeros(sizes, dy.dtype(), dy.device());
  }
  const Tensor used = ge(chosen, 0.0);
  return detail::give(where(used, dy, 0.0), where(used, chosen, 0.0), sizes, {&kEmbeddingBag, 0});
}

// Inputs that were checked: index and factors are contiguous and have one dimension.
struct Bags {
  Tensor weight, index, limits, factors;
  BagMode mode;
  int64_t exempt;
};

int64_t exempt_row(const std::optional<int64_t>& padding_idx, int64_t rows) {
  const int64_t given = padding_idx.value_or(kNoExemption);
  check(!padding_idx || (given >= -rows && given < rows), kEmbeddingBag.name, ": got padding_idx ",
        given, ", expected ", -rows, " to ", rows - 1);
  return padding_idx && given < 0 ? given + rows : given;
}

Bags checked(const detail::BagInputs& given, const EmbeddingBagOptions& options) {
  const char* op = kEmbeddingBag.name;
  check_floating(op, given.weight);
  check_integers("an index", given.index);
  check_one_device(op, {&given.weight, &given.index, &given.offsets, &given.per_sample_weights});
  check(given.weight.dim() == 2, op, ": got a weight of shape ", given.weight.sizes(),
        ", expected [rows, columns]");
  const int64_t exempt = exempt_row(options.padding_idx, given.weight.size(0));
  const Dims flat = {given.index.numel()};
  Bags bags{.weight = given.weight,
            .index = contiguous(reshape(given.index, flat)),
            .limits = bag_limits(given.index, given.offsets, options.include_last_offset),
            .factors = {},
            .mode = options.mode,
            .exempt = exempt};
  if (given.per_sample_weights.defined()) {
    check(options.mode == BagMode::sum, op,
          ": got per_sample_weights of a mean or maximum, expected them of a sum; choose "
          "BagMode::sum");
    check(given.per_sample_weights.sizes() == given.index.sizes(), op,
          ": got per_sample_weights of shape ", given.per_sample_weights.sizes(), ", expected ",
          given.index.sizes());
    const std::vector<Tensor> joined =
        detail::enter_joined(kEmbeddingBag, {given.weight, given.per_sample_weights});
    check_floating(op, joined[0], joined[1]);
    bags.weight = joined[0];
    bags.factors = contiguous(reshape(joined[1], flat));
  }
  return bags;
}

// The gradients of a sum or a mean.
Grads row_gradients(const Tensor& dy, const Needs& needs, const Bags& bags, const Dims& sizes) {
  const Tensor bag = bags_of(bags.limits, bags.index.numel());
  const Dims all = {bags.index.numel(), sizes[1]};
  const Tensor shared = detail::index_of_rows(bags.index, all, 0);
  const detail::Along along{&kEmbeddingBag, 0, bags.exempt};
  const Tensor whole =
      bags.mode == BagMode::mean ? shares_of(dy, bag, bags.index, bags.exempt) : dy;
  const Tensor terms = detail::take_rows(kEmbeddingBag, whole, 0, bag);  // [n, columns]
  Tensor dweight, dfactors;
  if (needs[0]) {
    const Tensor parts = bags.factors.defined() ? mul(terms, unsqueeze(bags.factors, 1)) : terms;
    dweight = detail::give(parts, shared, sizes, along);
  }
  if (needs[1]) {
    dfactors = sum(mul(terms, detail::take(bags.weight, shared, along, true)), {1});
  }
  return {dweight, dfactors};
}

}  // namespace

Tensor detail::embedding_bag(const BagInputs& inputs, const EmbeddingBagOptions& options) {
  const Bags bags = checked(inputs, options);
  const Tensor& weight = bags.weight;
  const Dims sizes = {bags.limits.numel() - 1, weight.size(1)};
  Tensor y = empty(sizes, weight.dtype(), weight.device()), chosen;
  const bool by_rows = bags.mode != BagMode::max;
  if (!by_rows && grad_enabled() && weight.requires_grad()) {
    chosen = empty(sizes, DType::i64, weight.device());
  }
  kernels::embedding_bag({.op = kEmbeddingBag.name,
                          .weight = weight,
                          .index = bags.index,
                          .offsets = bags.limits,
                          .factors = bags.factors,
                          .y = y,
                          .chosen = chosen,
                          .mode = bags.mode,
                          .exempt = bags.exempt});
  return kEmbeddingBag.record(
      {weight, bags.factors}, y,
      save(when(by_rows, bags.index), when(by_rows, bags.limits), bags.factors,
           when(bags.factors.defined(), weight), chosen),
      [sizes = weight.sizes(), mode = bags.mode, exempt = bags.exempt](
          const Tensor& dy, Needs needs, const Tensor& index, const Tensor& limits,
          const Tensor& factors, const Tensor& weight, const Tensor& chosen) -> Grads {
        if (mode == BagMode::max) {
          return {give_to_chosen(dy, chosen, sizes), Tensor()};
        }
        return row_gradients(dy, needs, {weight, index, limits, factors, mode, exempt}, sizes);
      });
}

}  // namespace binade
