// Operands for all kinds of attention, and the results in f64, computed with the whole score
// matrix.
#pragma once
#include <binade/kernels/attention/attention.h>
#include <binade/kernels/base/philox.h>
#include <tests/kernels/support/array_values.h>

#include <limits>

namespace binade::kernels {
namespace {

enum class Mask { none, keep, add };

struct Sizes {
  int64_t batch, heads, queries, keys, size, value_size;
};

struct AttentionCase {
  Sizes n;
  Mask mask = Mask::none;
  bool causal = false;
  bool model_order = false;  // heads are inside lengths in memory, with a gap
  double scale = 0.4;
  double dropout = 0;
};

constexpr uint64_t kSeed = 77, kOffset = 1003;

// The factor by which dropout multiplies weight number `index`.
double drop_factor(const AttentionCase& c, size_t index) {
  const uint64_t at = kOffset + index;
  return c.dropout == 0 ? 1
         : philox::uniform(philox::generate(kSeed, at / 4)[at % 4]) < static_cast<float>(c.dropout)
             ? 0
             : 1 / (1 - c.dropout);
}

std::string describe(const AttentionCase& c) {
  return text("attention ", c.n.batch, " x ", c.n.heads, " x ", c.n.queries, " x ", c.n.keys,
              " sizes ", c.n.size, ", ", c.n.value_size, " mask ", static_cast<int>(c.mask),
              c.causal ? " causal" : "", " dropout ", c.dropout,
              c.model_order ? " model order" : "");
}

struct Expected {
  Values out, lse, dq, dk, dv, dmask;
};

// Computes one head at a time with its whole matrix of scores.
class Reference {
 public:
  Reference(const AttentionCase& c, Values q, Values k, Values v, Values mask, Values dout)
      : c_(c), q_(q), k_(k), v_(v), mask_(mask), dout_(dout) {
    const Sizes& n = c.n;
    const auto heads = static_cast<size_t>(n.batch * n.heads);
    y.out.resize(heads * size_t(n.queries * n.value_size));
    y.lse.resize(heads * size_t(n.queries));
    y.dq.resize(q_.size());
    y.dk.resize(k_.size());
    y.dv.resize(v_.size());
    y.dmask.resize(heads * size_t(n.queries * n.keys));
    for (size_t head = 0; head < heads; ++head) {
      for (int64_t i = 0; i < n.queries; ++i) {
        row(head, size_t(i));
      }
    }
  }
  Expected y;

 private:
  void row(size_t head, size_t i) {
    const Sizes& n = c_.n;
    const auto queries = size_t(n.queries), keys = size_t(n.keys), size = size_t(n.size),
               values = size_t(n.value_size);
    const size_t query = head * queries + i;
    Values p(keys);
    double top = -kInf, sum = 0;
    for (size_t j = 0; j < keys; ++j) {
      double s = 0;
      for (size_t d = 0; d < size; ++d) {
        s += q_[query * size + d] * k_[(head * keys + j) * size + d];
      }
      s *= c_.scale;
      const double m = c_.mask == Mask::none ? 0 : mask_[query * keys + j];
      s = c_.mask == Mask::keep ? (m != 0 ? s : -kInf) : s + m;
      p[j] = c_.causal && j > i ? -kInf : s;
      top = std::max(top, p[j]);
    }
    for (double& s : p) {
      s = top == -kInf ? 0 : std::exp(s - top);
      sum += s;
    }
    y.lse[query] = sum == 0 ? kInf : top + std::log(sum);
    double delta = 0;
    Values dp(keys);
    for (size_t j = 0; j < keys; ++j) {
      p[j] = sum == 0 ? 0 : p[j] / sum;
      for (size_t d = 0; d < values; ++d) {
        const double g = dout_[query * values + d], v = v_[(head * keys + j) * values + d];
        const double factor = drop_factor(c_, query * keys + j);
        y.out[query * values + d] += factor * p[j] * v;
        y.dv[(head * keys + j) * values + d] += factor * p[j] * g;
        dp[j] += factor * g * v;
      }
      delta += p[j] * dp[j];
    }
    for (size_t j = 0; j < keys; ++j) {
      const double ds = p[j] * (dp[j] - delta);
      y.dmask[query * keys + j] = ds;
      for (size_t d = 0; d < size; ++d) {
        y.dq[query * size + d] += c_.scale * ds * k_[(head * keys + j) * size + d];
        y.dk[(head * keys + j) * size + d] += c_.scale * ds * q_[query * size + d];
      }
    }
  }

  const AttentionCase& c_;
  Values q_, k_, v_, mask_, dout_;
};

size_t count(const Dims& sizes) { return static_cast<size_t>(element_count(sizes)); }

// The operands of a case and their results.
struct Problem {
  AttentionCase c;
  DType dtype;
  Dims q_sizes{c.n.batch, c.n.heads, c.n.queries, c.n.size};
  Dims k_sizes{c.n.batch, c.n.heads, c.n.keys, c.n.size};
  Dims v_sizes{c.n.batch, c.n.heads, c.n.keys, c.n.value_size};
  Dims out_sizes{c.n.batch, c.n.heads, c.n.queries, c.n.value_size};
  Dims mask_sizes{c.n.batch, c.n.heads, c.n.queries, c.n.keys};
  std::vector<int> order = c.model_order ? std::vector<int>{0, 2, 1, 3} : std::vector<int>{};
  int64_t gap = c.model_order ? 3 : 0;
  StridedArray q = made(q_sizes, 1), k = made(k_sizes, 2), v = made(v_sizes, 3),
               dout = made(out_sizes, 4);
  StridedArray add = make_array(dtype, mask_sizes, added());
  std::vector<unsigned char> kept = keep();
  DeviceBytes keep_bytes{
      std::vector<std::byte>(reinterpret_cast<std::byte*>(kept.data()),
                             reinterpret_cast<std::byte*>(kept.data()) + kept.size())};
  StridedArray out{dtype, out_sizes, order, gap}, dq{dtype, q_sizes, order, gap},
      dk{dtype, k_sizes, order, gap}, dv{dtype, v_sizes, order, gap}, dmask{dtype, mask_sizes};
  StridedArray lse{compute_dtype(dtype), {c.n.batch, c.n.heads, c.n.queries}};

  StridedArray made(const Dims& sizes, uint32_t seed) const {
    return make_array(dtype, sizes, random_values(count(sizes), seed), order, gap);
  }
  Values added() const {
    Values values = random_values(count(mask_sizes), 5);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = i % 7 == 3 ? -kInf : values[i];
    }
    return values;
  }
  // The mask: the second query of each head sees no key.
  std::vector<unsigned char> keep() const {
    std::vector<unsigned char> values(count(mask_sizes));
    for (size_t i = 0; i < values.size(); ++i) {
      const auto query = i / size_t(c.n.keys) % size_t(c.n.queries);
      values[i] = query != 1 && (i * 2654435761u >> 7) % 3 != 0;
    }
    return values;
  }
  View mask() {
    return c.mask == Mask::none  ? kNoView
           : c.mask == Mask::add ? add.view()
                                 : test_view(keep_bytes.device(), DType::boolean, mask_sizes);
  }
  AttentionDropout dropout() const { return {.p = c.dropout, .seed = kSeed, .offset = kOffset}; }
  void forward() {
    const View m = mask();
    attention_forward({.q = q.view(),
                       .k = k.view(),
                       .v = v.view(),
                       .out = out.view(),
                       .lse = lse.view(),
                       .scale = c.scale,
                       .visible = {.mask = m, .causal = c.causal},
                       .dropout = dropout()});
  }
  void backward(const View& mask_gradient) {
    const View m = mask();
    attention_backward({.q = q.view(),
                        .k = k.view(),
                        .v = v.view(),
                        .out = out.view(),
                        .lse = lse.view(),
                        .dout = dout.view(),
                        .dq = dq.view(),
                        .dk = dk.view(),
                        .dv = dv.view(),
                        .dmask = mask_gradient,
                        .scale = c.scale,
                        .visible = {.mask = m, .causal = c.causal},
                        .dropout = dropout()});
  }
  Expected expected() {
    const Values m = c.mask == Mask::add ? values_of(add) : Values(kept.begin(), kept.end());
    return Reference(c, values_of(q), values_of(k), values_of(v), m, values_of(dout)).y;
  }
  void expect(const StridedArray& got, const Values& want, const char* name) const {
    const double units = 16 + 4 * epsilon(dtype) / epsilon(compute_dtype(dtype));
    expect_close(got, dtype, want, units, describe(c) + " " + name, 1);
  }
};

void check_case(const AttentionCase& c, DType dtype) {
  Problem run{c, dtype};
  run.forward();
  const Expected y = run.expected();
  run.expect(run.out, y.out, "out");
  expect_close(run.lse, compute_dtype(dtype), y.lse, 64, describe(c) + " lse");
  run.backward(c.mask == Mask::add ? run.dmask.view() : kNoView);
  run.expect(run.dq, y.dq, "dq");
  run.expect(run.dk, y.dk, "dk");
  run.expect(run.dv, y.dv, "dv");
  if (c.mask == Mask::add) {
    run.expect(run.dmask, y.dmask, "dmask");
  }
}

}  // namespace
}  // namespace binade::kernels
