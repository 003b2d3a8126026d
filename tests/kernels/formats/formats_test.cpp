// Compares the kernels of the format lab on any device with plain loops over kernels/formats/
// format_rounding.h; tests/core/precision/number_formats_test.cpp tests the rounding itself.
#include <binade/kernels/formats/formats.h>
#include <tests/kernels/support/array_values.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace binade::kernels::formats_test {
namespace {

FormatGrid e4m3fn_grid() {
  return {.max = 448, .beyond = 448, .mantissa_bits = 3, .min_exponent = -6, .bias = 7};
}
FormatGrid e8m0_grid() {
  return {.max = 0x1p127,
          .beyond = NAN,
          .mantissa_bits = 0,
          .min_exponent = -127,
          .bias = 127,
          .subnormals = false,
          .is_signed = false};
}
FormatGrid f16_grid() {
  return {.max = 65504, .beyond = INFINITY, .mantissa_bits = 10, .min_exponent = -14, .bias = 15};
}

bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

constexpr Rounding kRoundings[] = {Rounding::nearest_even, Rounding::toward_zero,
                                   Rounding::stochastic};

TEST(RoundToFormat, RoundsEveryElement) {
  for (DType dtype : floating_dtypes()) {
    for (int64_t count : {0, 1, 31, 257, 5001}) {
      for (Rounding rounding : kRoundings) {
        const StridedArray x =
            make_array(dtype, {count}, random_values(static_cast<size_t>(count), 3, 0, 300));
        StridedArray y = make_array(dtype, {count}, Values(static_cast<size_t>(count)));
        StridedArray scale = make_array(DType::f32, {1}, Values{0.75});
        StridedArray mutable_x = x;
        round_to_format({.x = mutable_x.view(),
                         .y = y.view(),
                         .grid = e4m3fn_grid(),
                         .rounding = rounding,
                         .seed = 7,
                         .offset = 9,
                         .scale = scale.view()});
        const Values in = values_of(x), out = values_of(y);
        for (size_t i = 0; i < in.size(); ++i) {
          const double want =
              0.75 * round_to_grid(in[i] / 0.75, e4m3fn_grid(), rounding, random_number(7, 9 + i));
          ASSERT_EQ(out[i], want) << to_string(dtype) << " " << i << " of " << count;
        }
      }
    }
  }
}

TEST(RoundBlocks, EveryBlockHasAScale) {
  constexpr int64_t kOuter = 3, kLength = 37, kBlock = 8;
  for (int64_t inner : {1, 5}) {
    Values values = random_values(static_cast<size_t>(kOuter * kLength * inner), 4);
    values[11 * static_cast<size_t>(inner)] = 1e4;
    values[20 * static_cast<size_t>(inner)] = INFINITY;
    std::fill_n(values.begin() + static_cast<int64_t>(kLength * inner), kBlock * inner, 0.0);
    StridedArray x = make_array(DType::f32, {kOuter, kLength, inner}, values);
    StridedArray y = make_array(DType::f32, {kOuter, kLength, inner}, Values(values.size()));
    round_blocks({.x = x.view(),
                  .y = y.view(),
                  .length = kLength,
                  .inner = inner,
                  .block = kBlock,
                  .grid = e4m3fn_grid(),
                  .scales = e8m0_grid(),
                  .rule = BlockScale::power,
                  .rounding = Rounding::nearest_even});
    const Values in = values_of(x), out = values_of(y);
    for (int64_t at = 0; at < kOuter * kLength * inner; ++at) {
      const int64_t along = at / inner % kLength, first = along / kBlock * kBlock;
      double amax = 0;
      for (int64_t i = first; i < std::min(first + kBlock, kLength); ++i) {
        const auto other = static_cast<size_t>(at + (i - along) * inner);
        amax = std::max(amax, std::fabs(in[other]));
      }
      const double scale = std::isinf(amax) ? NAN
                           : amax == 0      ? 1
                                            : std::exp2(std::floor(std::log2(amax)) - 8);
      const double x_at = in[static_cast<size_t>(at)];
      const double want =
          scale * round_to_grid(x_at / scale, e4m3fn_grid(), Rounding::nearest_even, 0);
      ASSERT_TRUE(same_number(out[static_cast<size_t>(at)], want))
          << at << ": " << out[static_cast<size_t>(at)] << ", expected " << want;
    }
  }
}

// The sum for one row and column, written a second time from the description in formats.h.
double naive_sum(const Values& products, SumOrder order, int64_t chunk, const FormatGrid& grid) {
  const auto r = [&](double x) { return round_to_grid(x, grid, Rounding::nearest_even, 0); };
  const auto count = static_cast<int64_t>(products.size());
  if (order == SumOrder::pairwise) {  // powers of two, the largest block first
    if (count == 1) {
      return r(products[0]);
    }
    int64_t half = 1;
    while (half * 2 < count) {
      half *= 2;
    }
    const auto middle = products.begin() + half;
    return r(naive_sum({products.begin(), middle}, order, chunk, grid) +
             naive_sum({middle, products.end()}, order, chunk, grid));
  }
  double total = 0, lost = 0;
  if (order == SumOrder::kahan) {
    for (const double p : products) {
      const double y = r(p - lost), t = r(total + y);
      lost = r(r(t - total) - y);
      total = t;
    }
    return total;
  }
  const int64_t part = order == SumOrder::chunks ? chunk : count;
  for (int64_t from = 0; from < count; from += part) {
    double sum = 0;
    for (int64_t i = from; i < std::min(count, from + part); ++i) {
      sum = r(sum + products[static_cast<size_t>(i)]);
    }
    total = part < count ? r(total + sum) : sum;
  }
  return total;
}

TEST(AccumulateMatmul, RoundsEverySum) {
  constexpr int64_t kRows = 3, kColumns = 5;
  for (int64_t k : {1, 7, 64, 129}) {
    for (SumOrder order :
         {SumOrder::sequential, SumOrder::chunks, SumOrder::pairwise, SumOrder::kahan}) {
      StridedArray a =
          make_array(DType::f32, {kRows, k}, random_values(static_cast<size_t>(kRows * k), 5, 1));
      StridedArray b = make_array(DType::f32, {k, kColumns},
                                  random_values(static_cast<size_t>(k * kColumns), 6, 1));
      StridedArray y = make_array(DType::f32, {kRows, kColumns}, Values(kRows * kColumns));
      accumulate_matmul({.a = a.view(),
                         .b = b.view(),
                         .y = y.view(),
                         .grid = f16_grid(),
                         .rounding = Rounding::nearest_even,
                         .order = order,
                         .chunk = 16});
      const Values left = values_of(a), right = values_of(b), out = values_of(y);
      for (int64_t row = 0; row < kRows; ++row) {
        for (int64_t column = 0; column < kColumns; ++column) {
          Values products;
          for (int64_t i = 0; i < k; ++i) {
            products.push_back(left[static_cast<size_t>(row * k + i)] *
                               right[static_cast<size_t>(i * kColumns + column)]);
          }
          ASSERT_EQ(out[static_cast<size_t>(row * kColumns + column)],
                    naive_sum(products, order, 16, f16_grid()))
              << k << " products, order " << static_cast<int>(order);
        }
      }
    }
  }
}

TEST(Formats, DoNotDependOnThreads) {
  const size_t count = every_combination() ? 100003 : 9001;
  StridedArray x = make_array(DType::f32, {static_cast<int64_t>(count)}, random_values(count, 5));
  StridedArray y = make_array(DType::f32, {static_cast<int64_t>(count)}, Values(count));
  expect_thread_invariant([&] {
    round_to_format({.x = x.view(),
                     .y = y.view(),
                     .grid = e4m3fn_grid(),
                     .rounding = Rounding::stochastic,
                     .seed = 1});
    const Values out = values_of(y);
    std::vector<std::byte> bytes(out.size() * sizeof(double));
    std::memcpy(bytes.data(), out.data(), bytes.size());
    return bytes;
  });
}

TEST(Formats, ArgumentsAreChecked) {
  StridedArray x = make_array(DType::f32, {4, 6}, Values(24)),
               y = make_array(DType::f32, {24}, Values(24));
  EXPECT_THROW(round_to_format({.x = x.view(),
                                .y = y.view(),
                                .grid = e4m3fn_grid(),
                                .rounding = Rounding::nearest_even}),
               Error);
  EXPECT_THROW(round_blocks({.x = x.view(),
                             .y = x.view(),
                             .length = 5,
                             .inner = 1,
                             .block = 8,
                             .grid = e4m3fn_grid(),
                             .scales = e8m0_grid(),
                             .rule = BlockScale::power,
                             .rounding = Rounding::nearest_even}),
               Error);
  EXPECT_THROW(accumulate_matmul({.a = x.view(),
                                  .b = x.view(),
                                  .y = x.view(),
                                  .grid = f16_grid(),
                                  .rounding = Rounding::nearest_even,
                                  .order = SumOrder::sequential}),
               Error);
}

}  // namespace
}  // namespace binade::kernels::formats_test
