// Attention against a plain f64 reference: every dtype, lengths and head sizes around the tiles,
// masks of both kinds, causal with different lengths, views in the order of models.
#include <binade/kernels/attention.h>
#include <tests/kernels/array_values.h>

#include <limits>
#include <optional>

namespace binade::kernels {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

enum class Mask { none, keep, add };

struct Sizes {
  int64_t batch, heads, queries, keys, size, value_size;
};

struct Case {
  Sizes n;
  Mask mask = Mask::none;
  bool causal = false;
  bool model_order = false;  // heads inside of lengths, with a gap
  double scale = 0.4;
};

std::string describe(const Case& c) {
  return text("attention ", c.n.batch, " x ", c.n.heads, " x ", c.n.queries, " x ", c.n.keys,
              " sizes ", c.n.size, ", ", c.n.value_size, " mask ", static_cast<int>(c.mask),
              c.causal ? " causal" : "", c.model_order ? " model order" : "");
}

struct Expected {
  Values out, lse, dq, dk, dv, dmask;
};

// One head at a time, with the whole matrix of scores.
class Reference {
 public:
  Reference(const Case& c, Values q, Values k, Values v, Values mask, Values dout)
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
        y.out[query * values + d] += p[j] * v;
        y.dv[(head * keys + j) * values + d] += p[j] * g;
        dp[j] += g * v;
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

  const Case& c_;
  Values q_, k_, v_, mask_, dout_;
};

size_t count(const Dims& sizes) { return static_cast<size_t>(element_count(sizes)); }

// The operands of a case and their results.
struct Problem {
  Case c;
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
  // The second query of each head sees nothing.
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
  void forward() {
    const View m = mask();
    attention_forward({.q = q.view(),
                       .k = k.view(),
                       .v = v.view(),
                       .out = out.view(),
                       .lse = lse.view(),
                       .scale = c.scale,
                       .visible = {.mask = m, .causal = c.causal}});
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
                        .visible = {.mask = m, .causal = c.causal}});
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

void check_case(const Case& c, DType dtype) {
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

TEST(Attention, MatchesReferenceForAllMasksAndOrders) {
  for (DType dtype : kFloatingDTypes) {
    for (Mask mask : {Mask::none, Mask::keep, Mask::add}) {
      for (bool causal : {false, true}) {
        check_case({{2, 2, 5, 7, 8, 9}, mask, causal, mask != Mask::keep}, dtype);
        check_case({{1, 2, 9, 4, 5, 3}, mask, causal, mask == Mask::keep}, dtype);
      }
    }
  }
}

TEST(Attention, MatchesReferenceAroundTiles) {
  for (DType dtype : kFloatingDTypes) {
    check_case({{1, 1, 1, 1, 1, 1}}, dtype);
    check_case({{1, 1, 33, 65, 16, 16}, Mask::none, true}, dtype);
    check_case({{1, 1, 67, 131, 24, 8}, Mask::add, false, true}, dtype);
    check_case({{1, 2, 65, 64, 8, 8}, Mask::none, true, true}, dtype);
    check_case({{1, 1, 3, 34, 66, 65}}, dtype);  // wider than one chunk of columns
    check_case({{1, 1, 2, 5, 130, 7}}, dtype);   // wider than the tensor cores take
    check_case({{1, 1, 2, 3, 7, 140}}, dtype);
    check_case({{1, 1, 140, 3, 4, 4}, Mask::keep}, dtype);
  }
}

TEST(Attention, LongHeadsOnTheCpu) {
  if (!every_combination()) {
    GTEST_SKIP() << "too slow on a device that is executed on the host";
  }
  for (DType dtype : kFloatingDTypes) {
    check_case({{1, 2, 150, 300, 64, 64}, Mask::none, true, true}, dtype);
    check_case({.n = {1, 1, 70, 130, 400, 33}, .scale = 0.05}, dtype);
  }
}

// A mask that repeats over batch or heads: its gradient is the sum over them.
TEST(Attention, SumsTheGradientOfARepeatedMask) {
  for (DType dtype : kFloatingDTypes) {
    Problem run{{{2, 3, 5, 6, 4, 4}, Mask::add}, dtype};
    for (const Dims& own : {Dims{1, 1, 5, 6}, {2, 1, 5, 6}, {1, 3, 5, 6}}) {
      const Values one = random_values(count(own), 8);
      Values all;
      const auto at = [&](int64_t b, int64_t h) {
        return size_t(((own[0] == 1 ? 0 : b) * own[1] + (own[1] == 1 ? 0 : h)) * 30);
      };
      for (int64_t head = 0; head < 6; ++head) {
        const auto from = one.begin() + static_cast<std::ptrdiff_t>(at(head / 3, head % 3));
        all.insert(all.end(), from, from + 30);
      }
      assign(run.add, all);
      run.forward();
      StridedArray sums(dtype, own);
      run.backward(sums.view());
      const Values each = run.expected().dmask;
      Values expected(one.size());
      for (size_t i = 0; i < each.size(); ++i) {
        expected[at(int64_t(i) / 90, int64_t(i) / 30 % 3) + i % 30] += each[i];
      }
      run.expect(sums, expected, "sums of dmask");
    }
  }
}

TEST(Attention, EmptyOperands) {
  Problem no_keys{{{1, 2, 3, 0, 4, 5}}, DType::f32};
  no_keys.forward();
  EXPECT_EQ(values_of(no_keys.out), Values(30));
  no_keys.backward(kNoView);
  EXPECT_EQ(values_of(no_keys.dq), Values(24));
  Problem no_queries{{{1, 2, 0, 3, 4, 5}}, DType::f16};
  no_queries.forward();
  no_queries.backward(kNoView);
  EXPECT_EQ(values_of(no_queries.dk), Values(24));
  EXPECT_EQ(values_of(no_queries.dv), Values(30));
  Problem no_heads{{{2, 0, 3, 3, 4, 5}}, DType::f64};
  no_heads.forward();
  no_heads.backward(kNoView);
}

TEST(Attention, LargeScoresStayFiniteAndNaNSpreads) {
  for (DType dtype : {DType::f32, DType::f16}) {
    Case c{{1, 1, 2, 3, 1, 1}};
    c.scale = 100;
    Problem run{c, dtype};
    assign(run.q, {30, std::nan("")});
    assign(run.k, {2, 1, -3});
    assign(run.v, {5, 6, 7});
    run.forward();
    EXPECT_EQ(values_of(run.out)[0], 5);
    EXPECT_TRUE(std::isnan(values_of(run.out)[1]));
  }
}

TEST(Attention, SameBitsForAnyThreadCount) {
  expect_thread_invariant([] {
    Problem run{{{2, 2, 70, 200, 16, 8}, Mask::add, true}, DType::f32};
    run.forward();
    run.backward(run.dmask.view());
    std::vector<std::byte> all;
    for (const StridedArray* array : {&run.out, &run.lse, &run.dq, &run.dk, &run.dv, &run.dmask}) {
      append(all, *array);
    }
    return all;
  });
}

TEST(Attention, ErrorsNameTheProblem) {
  Problem run{{{1, 1, 2, 3, 4, 5}}, DType::f32};
  StridedArray wrong(DType::f32, {1, 1, 3, 5});
  EXPECT_EQ(error_of([&] {
              attention_forward({.q = run.q.view(),
                                 .k = wrong.view(),
                                 .v = run.v.view(),
                                 .out = run.out.view(),
                                 .lse = run.lse.view(),
                                 .scale = 1});
            }),
            "attention: got k f32 [1, 1, 3, 5], expected f32 [1, 1, 3, 4]");
}

TEST(Attention, PassesOnNarrowerIsas) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels
