// Compares the kernels of the format lab on any device with plain loops over kernels/formats/
// format_rounding.h; tests/core/precision/number_formats_test.cpp tests the rounding itself.
#include <binade/kernels/formats/format_values.h>
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
          .infinite = NAN,
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

// Factors of every size, so that sums overflow, cancel, fall below the format and become NaN.
Values hard_values(size_t count, uint32_t seed, int hardness) {
  Values values = random_values(count, seed);
  for (size_t i = 0; i < count; ++i) {
    const size_t kind = (i * 2654435761u + seed) % 997;
    if (hardness > 0) {
      values[i] *= kind % 7 == 0 ? 0x1p-9 : kind % 7 == 1 ? 0x1p6 : kind % 7 == 2 ? 0 : 1;
    }
    if (hardness > 1 && kind < 6) {
      const double special[] = {INFINITY, -INFINITY, NAN, -0.0, 1e30, -1e-30};
      values[i] = special[kind];
    }
  }
  return values;
}

std::vector<FormatGrid> grids_of_sums() {
  FormatGrid nan_above = e4m3fn_grid(), no_subnormals = e4m3fn_grid();
  nan_above.beyond = NAN;
  nan_above.infinite = NAN;
  nan_above.negative_zero = false;
  no_subnormals.subnormals = false;
  const FormatGrid exponents{
      .max = 32768, .beyond = INFINITY, .mantissa_bits = 0, .min_exponent = -14, .bias = 15};
  const FormatGrid f32{.max = 0x1.fffffep127,
                       .beyond = INFINITY,
                       .mantissa_bits = 23,
                       .min_exponent = -126,
                       .bias = 127};
  return {f16_grid(), e4m3fn_grid(), nan_above, no_subnormals, exponents, f32, e8m0_grid()};
}

// Equal as bits, but a NaN is any NaN.
void expect_same_values(const Values& got, const Values& want, const std::string& what) {
  for (size_t i = 0; i < want.size(); ++i) {
    const bool signs = std::isnan(want[i]) || std::signbit(got[i]) == std::signbit(want[i]);
    ASSERT_TRUE(same_number(got[i], want[i]) && signs)
        << what << ", element " << i << ": " << got[i] << ", expected " << want[i];
  }
}

// Thread counts to test with; a device has no such threads.
std::vector<int> thread_counts() {
  return test_device().is_cpu() ? std::vector{1, 2, 3} : std::vector{1};
}

// y of an AccumulateMatmul, and what FormatSum::run() gives for each of its sums.
struct SumsCase {
  DType dtype;
  int64_t m, k, n;
  FormatGrid grid;
  Rounding rounding;
  SumOrder order;
  int64_t chunk;
  StridedArray a, b, y;

  SumsCase(DType type, const Dims& sizes, const FormatGrid& format, Rounding how, SumOrder which,
           int hardness)
      : dtype(type),
        m(sizes[0]),
        k(sizes[1]),
        n(sizes[2]),
        grid(format),
        rounding(how),
        order(which),
        chunk(13),
        a(make_array(type, {m, k}, hard_values(static_cast<size_t>(m * k), 5, hardness))),
        b(make_array(type, {k, n}, hard_values(static_cast<size_t>(k * n), 6, hardness))),
        y(make_array(type, {m, n}, Values(static_cast<size_t>(m * n)))) {}

  Values run() {
    accumulate_matmul({.a = a.view(),
                       .b = b.view(),
                       .y = y.view(),
                       .grid = grid,
                       .rounding = rounding,
                       .order = order,
                       .chunk = chunk,
                       .seed = 3,
                       .offset = 6});
    return values_of(y);
  }
  Values one_by_one() {
    const FormatSum rule{grid, rounding, order, chunk, {3, 6, nullptr}};
    const Values left = values_of(a), right = values_of(b);
    Values sums;
    for (int64_t element = 0; element < m * n; ++element) {
      sums.push_back(rule.run(element, k, [&](int64_t i) {
        return left[static_cast<size_t>(element / n * k + i)] *
               right[static_cast<size_t>(i * n + element % n)];
      }));
    }
    StridedArray stored = y;
    assign(stored, sums);
    return values_of(stored);
  }
};

TEST(AccumulateMatmul, HasTheBitsOfSingleSumsAtAnyThreadCount) {
  const Dims sizes[] = {{1, 70, 1}, {3, 33, 1}, {1, 40, 9}, {9, 29, 5}, {37, 70, 19}, {5, 0, 4}};
  for (const FormatGrid& grid : grids_of_sums()) {
    for (Rounding rounding : kRoundings) {
      for (SumOrder order :
           {SumOrder::sequential, SumOrder::chunks, SumOrder::pairwise, SumOrder::kahan}) {
        for (size_t i = 0; i < std::size(sizes); ++i) {
          const DType dtype = floating_dtypes()[i % floating_dtypes().size()];
          for (int hardness : {0, 1, 2}) {
            SumsCase sums(dtype, sizes[i], grid, rounding, order, hardness);
            const Values want = sums.one_by_one();
            for (int count : thread_counts()) {
              set_threads(count);
              expect_same_values(
                  sums.run(), want,
                  text(to_string(dtype), " ", sizes[i], ", mantissa ", grid.mantissa_bits,
                       ", rounding ", static_cast<int>(rounding), ", order ",
                       static_cast<int>(order), ", hardness ", hardness, ", ", count, " threads"));
            }
          }
        }
      }
    }
  }
  set_threads(0);
}

// Enough sums for several threads to share.
TEST(AccumulateMatmul, ManySumsAreShared) {
  for (Rounding rounding : {Rounding::nearest_even, Rounding::stochastic}) {
    for (const Dims& sizes : {Dims{130, 100, 77}, Dims{3000, 60, 3}}) {
      SumsCase sums(DType::f32, sizes, f16_grid(), rounding, SumOrder::chunks, 1);
      const Values want = sums.one_by_one();
      for (int count : thread_counts()) {
        set_threads(count);
        expect_same_values(sums.run(), want, text(count, " threads"));
      }
    }
  }
  set_threads(0);
}

TEST(Formats, PassOnNarrowerIsas) { EXPECT_TRUE(passes_on_narrower_isas()); }

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
