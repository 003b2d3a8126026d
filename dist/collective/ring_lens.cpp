#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/dist/collective/ring_lens.h>
#include <binade/kernels/base/philox.h>
#include <binade/kernels/copy/combine.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace binade::dist {
namespace {

using kernels::CombineOp;

// Each sum is kept as two doubles (D. Knuth's two-sum): exact for all values in these tables.
class ExactSum {
 public:
  ExactSum() = default;
  explicit ExactSum(const Tensor& x) : high_(x.data<double>(), x.data<double>() + x.numel()) {
    low_.resize(high_.size());
  }

  void add(const ExactSum& other) {
    for (size_t i = 0; i < high_.size(); ++i) {
      const double a = high_[i], b = other.high_[i], sum = a + b, of_b = sum - a;
      low_[i] += other.low_[i] + ((a - (sum - of_b)) + (b - of_b));
      high_[i] = sum;
    }
  }
  double high(size_t i) const { return high_[i] + low_[i]; }
  // (The exact value - n x) / n.
  double difference(size_t i, double x, double n) const {
    return ((high_[i] - x * n) + low_[i]) / n;
  }

 private:
  std::vector<double> high_, low_;
};

double unit_in_last_place(DType dtype, double value) {
  constexpr int kLeastExponent[] = {-1022, -126, -14, -126};
  const int exponent = value == 0 ? std::numeric_limits<int>::min() : std::ilogb(value);
  return std::ldexp(epsilon(dtype), std::max(exponent, kLeastExponent[static_cast<int>(dtype)]));
}

// Collects the errors of one hop over all segments and pairs.
struct HopSums {
  double error = 0, exact = 0;
  HopError out;

  void add(const Tensor& partial, const ExactSum& sum, double divisor, DType dtype) {
    const Tensor wide = partial.to(DType::f64);
    const double* got = wide.data<double>();
    for (int64_t i = 0; i < wide.numel(); ++i) {
      const auto k = static_cast<size_t>(i);
      const double expected = sum.high(k) / divisor;
      if (!std::isfinite(got[i]) || !std::isfinite(expected)) {
        out.infinite += std::isfinite(expected);
        continue;
      }
      const double difference = sum.difference(k, got[i], divisor);
      error += difference * difference;
      exact += expected * expected;
      out.ulps = std::max(out.ulps, std::abs(difference) / unit_in_last_place(dtype, expected));
      out.lost += got[i] == 0 && expected != 0;
    }
  }
  HopError result() {
    out.relative = exact > 0 ? std::sqrt(error / exact) : 0;
    return out;
  }
};

struct Partial {
  Tensor values;
  ExactSum exact;
};

class Reduction {
 public:
  Reduction(const std::vector<Tensor>& ranks, const ReductionChoice& choice)
      : choice_(choice),
        n_(static_cast<int64_t>(ranks.size())),
        wire_(is_half(choice.dtype) && choice.f32_carry ? DType::f32 : choice.dtype),
        before_(choice.division == Division::before ? static_cast<double>(n_) : 1),
        after_(choice.division == Division::after ? static_cast<double>(n_) : 1) {
    check(n_ > 0 && is_floating(choice.dtype), "ring lens: got ", n_, " ranks and dtype ",
          choice.dtype, ", expected one or more and a floating dtype");
    for (const Tensor& rank : ranks) {
      check(rank.dtype() == DType::f64 && rank.device().is_cpu() && rank.view().contiguous &&
                rank.numel() == ranks[0].numel(),
            "ring lens: got ", rank.dtype(), " of ", rank.numel(), " elements, expected ",
            ranks[0].numel(), " contiguous elements of f64 on the CPU");
      ranks_.push_back(rank.reshape({rank.numel()}).to(choice.dtype));
    }
  }

  Tensor run(std::vector<HopError>* hops) {
    const Tensor result = choice_.order == ReductionOrder::ring ? ring() : tree();
    if (hops) {
      hops->clear();
      for (HopSums& sums : hops_) {
        hops->push_back(sums.result());
      }
    }
    return result;
  }

 private:
  Tensor ring() {
    const int64_t count = ranks_[0].numel();
    const Tensor result = empty({count}, choice_.dtype);
    for (int64_t j = 0; j < n_; ++j) {
      const int64_t begin = count * j / n_, end = count * (j + 1) / n_;
      const auto own = [&](int64_t rank) {
        return slice(ranks_[static_cast<size_t>(rank % n_)], 0, begin, end);
      };
      Partial sum = first(own(j + 1));
      for (int64_t hop = 1; hop < n_; ++hop) {
        const Tensor x = own(j + 1 + hop);
        sum.exact.add(ExactSum(x.to(DType::f64)));
        sum.values = combined(sum.values, x, before_, hop == n_ - 1);
        measure(static_cast<size_t>(hop - 1), sum, hop == n_ - 1);
      }
      slice(result, 0, begin, end).copy_(sum.values);
    }
    return result;
  }

  Tensor tree() {
    std::vector<Partial> parts;
    for (const Tensor& rank : ranks_) {
      parts.push_back(first(rank));
    }
    for (size_t level = 0; parts.size() > 1; ++level) {
      const bool last = parts.size() == 2;
      std::vector<Partial> next;
      for (size_t i = 0; i < parts.size(); i += 2) {
        Partial sum = std::move(parts[i]);
        if (i + 1 < parts.size()) {
          sum.exact.add(parts[i + 1].exact);
          sum.values = combined(sum.values, parts[i + 1].values, 1, last);
        }
        measure(level, sum, last);
        next.push_back(std::move(sum));
      }
      parts = std::move(next);
    }
    return parts[0].values.to(choice_.dtype);
  }

  // The message of the first rank of a sum.
  Partial first(const Tensor& x) const {
    Partial sum{x, ExactSum(x.to(DType::f64))};
    if (n_ > 1 && (before_ != 1 || wire_ != x.dtype())) {
      sum.values = empty({x.numel()}, wire_);
      kernels::cpu::combine(
          {.op = CombineOp::sum, .received = kNoView, .x = x, .y = sum.values, .before = before_});
    }
    return sum;
  }

  Tensor combined(const Tensor& received, const Tensor& x, double before, bool last) const {
    const bool narrow = last && x.dtype() == choice_.dtype;
    const Tensor y = empty({x.numel()}, narrow ? choice_.dtype : wire_);
    kernels::cpu::combine({.op = CombineOp::sum,
                           .received = received,
                           .x = x,
                           .y = y,
                           .before = before,
                           .after = last ? after_ : 1});
    return last ? y.to(choice_.dtype) : y;
  }

  void measure(size_t hop, const Partial& sum, bool last) {
    hops_.resize(std::max(hops_.size(), hop + 1));
    hops_[hop].add(sum.values, sum.exact, before_ * (last ? after_ : 1), choice_.dtype);
  }

  const ReductionChoice choice_;
  const int64_t n_;
  const DType wire_;
  const double before_, after_;
  std::vector<Tensor> ranks_;
  std::vector<HopSums> hops_;
};

// The values of x in this rank's random order (R. Fisher, F. Yates, 1938).
Tensor shuffled(const Tensor& x, uint64_t seed, int rank) {
  const Tensor y = empty({x.numel()}, DType::f64);
  y.copy_(x);
  philox::Stream random(seed, static_cast<uint64_t>(rank));
  for (int64_t i = y.numel() - 1; i > 0; --i) {
    std::swap(y.data<double>()[i],
              y.data<double>()[random.next_below(static_cast<uint32_t>(i + 1))]);
  }
  return y;
}

std::vector<ReductionChoice> choices_of(DType dtype) {
  std::vector<ReductionChoice> out;
  for (const bool carry : {false, true}) {
    if (carry && !is_half(dtype)) {
      continue;
    }
    for (const Division division : {Division::none, Division::before, Division::after}) {
      for (const ReductionOrder order : {ReductionOrder::ring, ReductionOrder::tree}) {
        out.push_back({dtype, carry, division, order});
      }
    }
  }
  return out;
}

}  // namespace

Tensor reduce_as(const std::vector<Tensor>& ranks, const ReductionChoice& choice,
                 std::vector<HopError>* hops) {
  return Reduction(ranks, choice).run(hops);
}

RingLensReport ring_lens(const Tensor& x, const std::string& source,
                         const RingLensOptions& options) {
  constexpr int64_t kMostElements = std::numeric_limits<int32_t>::max();
  check(is_floating(x.dtype()) && x.numel() > 0 && x.numel() <= kMostElements, "ring lens: got ",
        x.dtype(), " of ", x.numel(), " elements, expected 1 to 2^31 - 1 floating ones");
  const Tensor values = x.detach().to(Device{}).to(DType::f64).contiguous().reshape({x.numel()});
  RingLensReport report{source, x.numel(), {}};
  for (const int n : options.ranks) {
    check(n >= RingLensOptions::kLeastRanks && n <= RingLensOptions::kMostRanks, "ring lens: got ",
          n, " ranks, expected ", RingLensOptions::kLeastRanks, " to ",
          RingLensOptions::kMostRanks);
    std::vector<Tensor> ranks;
    for (int rank = 0; rank < n; ++rank) {
      ranks.push_back(shuffled(values, options.seed, rank));
    }
    for (const DType dtype : options.dtypes) {
      for (const ReductionChoice& choice : choices_of(dtype)) {
        reduce_as(ranks, choice, &report.rows.emplace_back(RingLensRow{choice, n, {}}).hops);
      }
    }
  }
  return report;
}

}  // namespace binade::dist
