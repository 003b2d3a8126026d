// LAMB and LARS on the CPU: threads take whole chunks, and the sums of a parameter are added in the
// order of its chunks.
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/optimizer/low_update_internal.h>
#include <binade/kernels/optimizer/optimizer_blocks_internal.h>
#include <binade/kernels/optimizer/optimizer_trust_internal.h>
#include <binade/kernels/optimizer/optimizer_trust_isa_internal.h>

namespace binade::kernels {
namespace {

// Calls body(row) for every chunk of the table.
template <class F>
void for_chunks(const TrustTable& table, F&& body) {
  parallel_for(table.chunks.sizes[0], kElementsPerTask / kTrustChunk,
               [&](int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end; ++row) {
                   body(row);
                 }
               });
}

// measure(range) writes the sums of a range; update(range) runs once the learning rate is known.
template <class Step, class RangeOf, class Measure, class Update>
void run(const Step& a, const RangeScalars& w, RangeOf range_of, Measure measure, Update update) {
  const TrustTable& table = a.table;
  const auto* chunks = table.chunks.template as<TrustChunk>();
  const auto* items = table.items.template as<TrustItem>();
  auto* ratios = table.ratios.template as<double>();
  const Workspace memory(static_cast<size_t>(table.chunks.sizes[0]) * sizeof(TrustSums));
  auto* sums = memory.as<TrustSums>();
  for_chunks(table, [&](int64_t row) {
    auto range = range_of(chunks[row].begin - table.origin, chunks[row].count);
    range.sums = &sums[row].p;
    if (a.low.how == LowUpdates::nearest) {
      measure(range);
    } else {
      const LowBlock block(a.low, range.range, chunks[row].begin - table.origin);
      measure(range);
    }
  });
  for (int64_t item = 0; item < table.items.sizes[0]; ++item) {
    TrustSums total{0, 0};
    for (int64_t row = items[item].first; row < items[item].last; ++row) {
      total.p += sums[row - table.first_chunk].p;
      total.r += sums[row - table.first_chunk].r;
    }
    ratios[item] = trust_ratio(rule_of(a), total);
  }
  for_chunks(table, [&](int64_t row) {
    auto range = range_of(chunks[row].begin - table.origin, chunks[row].count);
    range.rate = w.lr * ratios[chunks[row].item - table.first_item];
    if (a.low.how == LowUpdates::nearest) {
      update(range);
    } else {
      LowBlock block(a.low, range.range, chunks[row].begin - table.origin);
      update(range);
      block.store(w, static_cast<bool>(a.step_scalars));
    }
  });
}

}  // namespace

void cpu::lamb_step(const LAMBStep& a) {
  check_arguments(a);
  const RangeScalars w = a.step_scalars ? *a.step_scalars.as<RangeScalars>() : step_scalars_of(a);
  if (w.apply == 0) {
    return;
  }
  const auto range_of = [&](int64_t begin, int64_t count) {
    return LAMBRange{.range = step_range(a.param, a.master, a.grad, begin, begin + count),
                     .exp_avg = element(a.exp_avg, begin),
                     .exp_avg_sq = element(a.exp_avg_sq, begin),
                     .beta1 = w.momentum,
                     .beta2 = a.beta2,
                     .eps = a.eps,
                     .first_scale = w.first_scale,
                     .second_scale = w.second_scale,
                     .grad_scale = w.multiplier,
                     .weight_decay = a.weight_decay};
  };
  run(
      a, w, range_of, [](const LAMBRange& range) { lamb_measure_range_best(range); },
      [](const LAMBRange& range) { lamb_update_range_best(range); });
}

void cpu::lars_step(const LARSStep& a) {
  check_arguments(a);
  const RangeScalars w = a.step_scalars ? *a.step_scalars.as<RangeScalars>() : step_scalars_of(a);
  if (w.apply == 0) {
    return;
  }
  const auto range_of = [&](int64_t begin, int64_t count) {
    return LARSRange{.range = step_range(a.param, a.master, a.grad, begin, begin + count),
                     .momentum_buffer = element(a.momentum_buffer, begin),
                     .momentum = w.momentum,
                     .grad_scale = w.multiplier,
                     .weight_decay = a.weight_decay};
  };
  run(
      a, w, range_of, [](const LARSRange& range) { lars_measure_range_best(range); },
      [](const LARSRange& range) { lars_update_range_best(range); });
}

}  // namespace binade::kernels
