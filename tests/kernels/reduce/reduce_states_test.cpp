// Tests norms, variance, logsumexp, products and extremes, with the values for their gradients,
// over every subset of dimensions against two-pass arithmetic in double; the gradients; argmin.
#include <tests/kernels/reduce/reduce_reference.h>
#include <tests/kernels/support/strided_array.h>

namespace binade::kernels::reduce_states_test {
namespace {

constexpr Reduce kOps[] = {Reduce::max,       Reduce::min,   Reduce::prod,
                           Reduce::norm1,     Reduce::norm2, Reduce::norm_inf,
                           Reduce::logsumexp, Reduce::var,   Reduce::std};
bool has_aux(Reduce op) {
  return op != Reduce::norm1 && op != Reduce::norm2 && op != Reduce::logsumexp;
}

void fill_input(Reduce op, Array& x) {
  x.random(static_cast<uint32_t>(x.numel()) + 1, -4, 4);
  for (int64_t i = 0; i < x.numel(); ++i) {
    if (op == Reduce::prod) {  // some zeros, the rest near 1
      x.set(i, x[i] > 3.5 ? 0 : 1 + x[i] / 512);
    } else if (op == Reduce::max || op == Reduce::min || op == Reduce::norm_inf) {
      x.set(i, std::round(x[i]));  // ties
    }
  }
}

struct Trial {
  Reduce op;
  DType dtype;
  Dims sizes, y_sizes;
  Layout layout;
  double correction = 1;
};

void check(const Trial& t) {
  const DType wide = compute_dtype(t.dtype);
  Array x(t.dtype, t.sizes, t.layout), y(t.dtype, t.y_sizes, Layout::step2);
  const DType aux_type = aux_dtype(t.op, t.dtype);
  Array aux(aux_type, t.y_sizes, Layout::transposed), again(wide, t.y_sizes, Layout::padded);
  fill_input(t.op, x);
  const View none, second = has_aux(t.op) ? aux.view() : none;
  reduce_forward({t.op, x.view(), y.view(), second, t.correction});
  reduce_forward({t.op, x.view(), again.view(), none, t.correction});
  ASSERT_TRUE(y.gaps_untouched() && aux.gaps_untouched() && again.gaps_untouched());
  const auto all = sequences(x, t.sizes, t.y_sizes);
  for (size_t i = 0; i < all.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const Expected e = reference(t.op, all[i], t.correction);
    const std::string what = text(to_string(t.op), " ", describe(t.dtype, t.sizes, t.layout),
                                  " to ", t.y_sizes, " element ", i);
    if (std::isnan(e.y)) {
      ASSERT_TRUE(std::isnan(y[at]) && std::isnan(again[at])) << what;
      continue;
    }
    const double n = static_cast<double>(all[i].size());
    const double units = t.op == Reduce::prod ? 2 + n : 8 + 2 * std::sqrt(n);
    const double scale = std::max(std::fabs(e.y), 1.0);
    ASSERT_NEAR(again[at], e.y, units * epsilon(wide) * scale) << what;
    ASSERT_NEAR(y[at], e.y, (units * epsilon(wide) + epsilon(t.dtype)) * scale) << what;
    if (has_aux(t.op)) {
      ASSERT_NEAR(aux[at], e.aux, units * epsilon(aux_type) * std::max(4.0, std::fabs(e.aux)))
          << what;
    }
  }
}

TEST(ReduceStates, EverySubsetOfDimensionsAndLayout) {
  for (const Dims& sizes : {Dims{}, Dims{7}, Dims{33, 40}, Dims{3, 300}, Dims{2, 9, 6, 5}}) {
    for (int mask = 0; mask < 1 << sizes.size(); ++mask) {
      Dims y_sizes = sizes;
      for (int d = 0; d < sizes.size(); ++d) {
        y_sizes[d] = mask >> d & 1 ? 1 : sizes[d];
      }
      int turn = mask;
      for (Reduce op : kOps) {
        for (DType dtype : floating_dtypes()) {
          for (Layout layout : kInputLayouts) {
            if (every_combination() || turn++ % 41 == 0) {
              check({op, dtype, sizes, y_sizes, layout});
            }
          }
        }
      }
    }
  }
}

TEST(ReduceStates, LargeShapesInChunks) {
  const int64_t scale = every_combination() ? 4 : 1;
  const Dims shapes[][2] = {{{17003 * scale}, {1}},
                            {{300 * scale, 33}, {1, 33}},
                            {{5000 * scale, 3}, {1, 3}},
                            {{2, 9001 * scale}, {2, 1}},
                            {{10, 70, 5}, {10, 1, 5}}};
  int turn = 0;
  for (const auto& [sizes, y_sizes] : shapes) {
    for (Reduce op : kOps) {
      if (every_combination() || op == Reduce::var || turn++ % 5 == 0) {
        check({op, DType::f32, sizes, y_sizes, Layout::contiguous, 0});
      }
    }
  }
}

// A one-pass formula in float would lose all digits here.
TEST(ReduceStates, VarianceBesideALargeMean) {
  for (const auto& [sizes, y_sizes] :
       {std::pair<Dims, Dims>{{3, 3001}, {3, 1}}, std::pair<Dims, Dims>{{3001, 3}, {1, 3}}}) {
    Array x(DType::f32, sizes), y(DType::f32, y_sizes);
    x.random(5, 10000, 10004);
    reduce_forward({.op = Reduce::var, .x = x.view(), .y = y.view(), .correction = 1});
    const auto all = sequences(x, sizes, y_sizes);
    for (size_t i = 0; i < all.size(); ++i) {
      const double expected = moments(Reduce::var, all[i], 1).y;
      EXPECT_NEAR(y[static_cast<int64_t>(i)] / expected, 1, 1e-4);
    }
  }
  Array same(DType::f32, {1024}), zero(DType::f32, {1});
  for (int64_t i = 0; i < same.numel(); ++i) {
    same.set(i, 1e25);
  }
  reduce_forward({.op = Reduce::var, .x = same.view(), .y = zero.view(), .correction = 1});
  EXPECT_LT(zero[0], 1e38);  // the square of the mean overflows
}

TEST(ReduceStates, HalfNormsDoNotOverflow) {
  for (const auto& [sizes, y_sizes] :
       {std::pair<Dims, Dims>{{2, 900}, {2, 1}}, std::pair<Dims, Dims>{{900, 2}, {1, 2}}}) {
    Array x(DType::f16, sizes), y(DType::f16, y_sizes);
    for (int64_t i = 0; i < x.numel(); ++i) {
      x.set(i, i % 2 ? 1000 : -1000);
    }
    reduce_forward({Reduce::norm2, x.view(), y.view()});
    EXPECT_EQ(y[0], 30000);
    EXPECT_EQ(y[1], 30000);
  }
}

TEST(ReduceStates, NothingInfinityAndNan) {
  Array nothing(DType::f32, {0, 2}), y(DType::f32, {1, 2});
  const std::pair<Reduce, double> empty[] = {{Reduce::norm1, 0},
                                             {Reduce::norm2, 0},
                                             {Reduce::logsumexp, -INFINITY},
                                             {Reduce::var, NAN},
                                             {Reduce::std, NAN}};
  for (const auto& [op, expected] : empty) {
    reduce_forward({op, nothing.view(), y.view()});
    EXPECT_TRUE(y[1] == expected || (std::isnan(y[1]) && std::isnan(expected))) << to_string(op);
  }
  EXPECT_THROW(reduce_forward({Reduce::norm_inf, nothing.view(), y.view()}), Error);
  const std::vector<Sequence> rows = {{-INFINITY, -INFINITY}, {0, -INFINITY}, {INFINITY, 1},
                                      {INFINITY, INFINITY},   {1, NAN},       {NAN, -INFINITY}};
  const double expected[] = {-INFINITY, 0, INFINITY, INFINITY, NAN, NAN};
  for (size_t i = 0; i < rows.size(); ++i) {
    for (int64_t n : {2, 700}) {
      Array x(DType::f32, {n}), one(DType::f32, {1}), ties(DType::f32, {1});
      for (int64_t k = 0; k < n; ++k) {
        x.set(k, k == n - 1 ? rows[i][1] : k == 0 ? rows[i][0] : -INFINITY);
      }
      reduce_forward({Reduce::logsumexp, x.view(), one.view()});
      EXPECT_TRUE(one[0] == expected[i] || (std::isnan(one[0]) && std::isnan(expected[i])))
          << i << " of " << n << " gives " << one[0];
      reduce_forward({Reduce::max, x.view(), one.view(), ties.view()});
      EXPECT_EQ(std::isnan(one[0]), std::isnan(expected[i])) << i << " of " << n;
    }
  }
}

TEST(ReduceStates, AnyAndAllOfBools) {
  for (Layout layout : {Layout::contiguous, Layout::transposed, Layout::step2}) {
    Array x(DType::boolean, {5, 37}, layout), any(DType::boolean, {5, 1}),
        all(DType::boolean, {1, 37});
    for (int64_t i = 0; i < x.numel(); ++i) {
      x.set(i, i / 37 == 2 ? 0 : i % 5 != 0);
    }
    reduce_forward({Reduce::max, x.view(), any.view()});
    reduce_forward({Reduce::min, x.view(), all.view()});
    for (int64_t i = 0; i < 5; ++i) {
      EXPECT_EQ(any[i], i != 2);
    }
    for (int64_t i = 0; i < 37; ++i) {
      EXPECT_EQ(all[i], 0);
    }
  }
}

TEST(ReduceBackward, EveryFormulaLayoutAndDtype) {
  const std::pair<Dims, Dims> shapes[] = {
      {{5, 24}, {5, 1}}, {{24, 5}, {1, 5}}, {{3, 4, 7}, {3, 1, 7}}, {{31}, {1}}, {{}, {}}};
  int turn = 0;
  for (const auto& [sizes, y_sizes] : shapes) {
    for (DType dtype : floating_dtypes()) {
      for (Layout layout : kOutputLayouts) {
        for (int op = 0; op <= static_cast<int>(ReduceSlope::quotient); ++op) {
          if (!every_combination() && turn++ % 5 != 0) {
            continue;
          }
          const auto rule = static_cast<ReduceSlope>(op);
          const DType wide = compute_dtype(dtype);
          Array x(dtype, sizes, layout), dx(dtype, sizes, layout), a(wide, y_sizes),
              b(rule == ReduceSlope::deviation ? DType::f64 : wide, y_sizes, Layout::step2);
          x.random(1, -2, 2);
          a.random(2, -2, 2);
          b.random(3, 0, 2);
          for (int64_t i = 0; i < x.numel() && rule != ReduceSlope::exponential; ++i) {
            x.set(i, std::round(x[i]));
          }
          for (int64_t i = 0; i < b.numel(); ++i) {
            b.set(i, std::round(b[i]));
          }
          const View none;
          const bool without = rule == ReduceSlope::sign;
          reduce_backward({rule, x.view(), a.view(), without ? none : b.view(), dx.view()});
          ASSERT_TRUE(dx.gaps_untouched());
          for (int64_t i = 0; i < x.numel(); ++i) {
            int64_t rest = i, at = 0, scale = 1;
            for (int d = sizes.size() - 1; d >= 0; --d) {
              at += y_sizes[d] == 1 ? 0 : rest % sizes[d] * scale;
              scale *= y_sizes[d];
              rest /= sizes[d];
            }
            const double expected = slope(rule, x[i], a[at], b[at]);
            ASSERT_NEAR(dx[i], expected, (epsilon(dtype) + 4 * epsilon(wide)) * std::fabs(expected))
                << op << " " << describe(dtype, sizes, layout) << " element " << i;
          }
        }
      }
    }
  }
}

// b needs more digits than float has, along rows and across them; an undefined b is 0.
TEST(ReduceBackward, DeviationKeepsTheDigitsOfB) {
  for (const auto& [sizes, y_sizes] :
       {std::pair<Dims, Dims>{{3, 1030}, {3, 1}}, std::pair<Dims, Dims>{{1030, 3}, {1, 3}}}) {
    Array x(DType::f32, sizes), a(DType::f32, y_sizes), b(DType::f64, y_sizes),
        dx(DType::f32, sizes);
    x.random(7, 1e6 - 1, 1e6 + 1);
    a.random(8, 1, 2);
    b.random(9, 1e6 - 1, 1e6 + 1);
    const bool rows = sizes[0] == 3;
    for (const bool with_b : {true, false}) {
      const View none;
      reduce_backward(
          {ReduceSlope::deviation, x.view(), a.view(), with_b ? b.view() : none, dx.view()});
      for (int64_t i = 0; i < x.numel(); ++i) {
        const int64_t at = rows ? i / 1030 : i % 3;
        const double expected = a[at] * (x[i] - (with_b ? b[at] : 0));
        ASSERT_NEAR(dx[i], expected, 2 * epsilon(DType::f32) * std::fabs(expected)) << i;
      }
    }
  }
}

TEST(ArgMin, ValuesAndFirstOfTies) {
  for (DType dtype : {DType::f32, DType::f16, DType::f64, DType::i64, DType::i32}) {
    for (int64_t n : {1, 9, 300, 5000}) {
      Array x(dtype, {3, n}), index(DType::i64, {3}), values(dtype, {3});
      x.random(9, -8, 8);
      for (int64_t i = 0; i < x.numel(); ++i) {
        x.set(i, std::trunc(x[i]));
      }
      for (bool smallest : {false, true}) {
        argmax({x.view(), index.view(), 1, values.view(), smallest});
        for (int64_t r = 0; r < 3; ++r) {
          int64_t best = 0;
          for (int64_t k = 1; k < n; ++k) {
            const double have = x[r * n + best], seen = x[r * n + k];
            best = (smallest ? seen < have : seen > have) ? k : best;
          }
          ASSERT_EQ(index[r], static_cast<double>(best)) << to_string(dtype) << " " << n;
          ASSERT_EQ(values[r], x[r * n + best]);
        }
      }
    }
  }
  Array least(DType::i64, {2}), at(DType::i64, {});
  least.set(0, 5);
  least.set(1, -0x1p63);  // its negative does not exist in i64
  argmax({least.view(), at.view(), 0, kNoView, true});
  EXPECT_EQ(at[0], 1);
  Array wrong(DType::f64, {});
  EXPECT_THROW(argmax({least.view(), at.view(), 0, wrong.view()}), Error);
}

TEST(ReduceStates, BitsDoNotDependOnThreadCount) {
  for (const auto& [sizes, y_sizes] :
       {std::pair<Dims, Dims>{{200000}, {1}}, std::pair<Dims, Dims>{{3000, 70}, {1, 70}}}) {
    for (Reduce op : kOps) {
      Array x(DType::f32, sizes), first(DType::f32, y_sizes);
      x.random(1);
      set_threads(1);
      reduce_forward({op, x.view(), first.view()});
      for (int count : {2, 4}) {
        set_threads(count);
        Array again(DType::f32, y_sizes);
        reduce_forward({op, x.view(), again.view()});
        EXPECT_EQ(again.bytes(), first.bytes()) << to_string(op);
      }
    }
  }
  set_threads(0);
}

TEST(ReduceStates, BadArgumentsAreErrors) {
  Array x(DType::f32, {3, 4}), y(DType::f32, {3, 1}), integers(DType::i64, {3, 4}),
      y64(DType::i64, {3, 1}), wide(DType::f64, {3, 1}), flat(DType::f32, {3});
  EXPECT_THROW(reduce_forward({Reduce::var, integers.view(), y64.view()}), Error);
  EXPECT_THROW(reduce_forward({Reduce::norm1, x.view(), wide.view()}), Error);
  EXPECT_THROW(reduce_forward({Reduce::norm1, x.view(), y.view(), y.view()}), Error);
  EXPECT_THROW(reduce_forward({Reduce::var, x.view(), y.view(), flat.view()}), Error);
  EXPECT_THROW(reduce_backward({ReduceSlope::sign, x.view(), wide.view(), kNoView, x.view()}),
               Error);
  EXPECT_THROW(reduce_backward({ReduceSlope::sign, x.view(), y.view(), kNoView, y.view()}), Error);
  EXPECT_THROW(reduce_backward({ReduceSlope::deviation, x.view(), y.view(), y.view(), x.view()}),
               Error);
  EXPECT_THROW(reduce_forward({Reduce::var, x.view(), y.view(), y.view()}), Error);
}

TEST(NarrowerIsas, ReduceStatesPasses) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::reduce_states_test
