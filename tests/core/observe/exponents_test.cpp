// Compares the lens with a cast of every element.
#include <binade/core/observe/exponents.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <gtest/gtest.h>
#include <tests/kernels/support/test_device.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

namespace binade::exponents_test {
namespace {

// Copies these elements to the test device.
template <class T>
Tensor tensor_of(const std::vector<T>& values, const Dims& sizes) {
  const Tensor host = empty(sizes, dtype_of<T>);
  std::copy(values.begin(), values.end(), host.view().as<T>());
  return host.to(kernels::test_device());
}

// f32 numbers with every exponent, and special values.
std::vector<float> floats(size_t count, uint32_t seed, int least = 0, int most = 255) {
  std::mt19937 generator(seed);
  std::vector<float> values = {
      0.0f,        -0.0f,        INFINITY,        -INFINITY,       NAN,
      65504,       65519.996f,   65520,           -65520,          65536,
      0x1p-14f,    0x1.ff8p-15f, 0x1.ff7ffep-15f, -0x1.ffcp-15f,   0x1p-24f,
      0x1p-25f,    -0x1p-25f,    0x1.000002p-25f, 0x1.fffffep-26f, 0x1p-126f,
      0x1p-133f,   0x1p-134f,    0x1p-149f,       0x1.fffffep127f, 0x1.fep127f,
      -0x1.ffp127f};
  values.resize(std::min(count, values.size()));
  while (values.size() < count) {
    const uint32_t span = static_cast<uint32_t>(most - least + 1);
    uint32_t bits = (generator() & 0x807fffffu) | (least + generator() % span) << 23;
    bits &= generator() % 3 == 0 ? 0xffff0000u : generator() % 5 == 0 ? 0xff800000u : ~0u;
    values.push_back(std::bit_cast<float>(bits));
  }
  return values;
}

struct Expected {
  int64_t zeros = 0, nans = 0, infinities = 0, changed = 0;
  HalfCounts fates;
  double largest = 0, smallest = 0;
  std::vector<int64_t> exponents = std::vector<int64_t>(256);  // starts at kLeast - 1
};

// The counts expected for the elements times 2^power, found by casting each element.
template <class T>
Expected by_casts(const std::vector<T>& values, int power = 0) {
  Expected e;
  for (T element : values) {
    const double x = std::ldexp(static_cast<double>(element), power), size = std::abs(x);
    if (x == 0 || !std::isfinite(x)) {
      ++(x == 0 ? e.zeros : std::isnan(x) ? e.nans : e.infinities);
      continue;
    }
    const auto cast = std::abs(static_cast<double>(half(x)));
    e.fates.overflow += std::isinf(cast);
    e.fates.flushed += cast == 0;
    e.fates.subnormal += cast != 0 && cast < 0x1p-14;
    e.changed += static_cast<double>(bfloat16(x)) != x;
    e.largest = std::max(e.largest, size);
    e.smallest = e.smallest == 0 ? size : std::min(e.smallest, size);
    ++e.exponents[static_cast<size_t>(std::clamp(std::ilogb(x), -127, 127) + 127)];
  }
  return e;
}

void expect_same(const ExponentCounts& got, const Expected& e, const char* what) {
  EXPECT_EQ(got.zeros(), e.zeros) << what;
  EXPECT_EQ(got.nans(), e.nans) << what;
  EXPECT_EQ(got.infinities(), e.infinities) << what;
  EXPECT_EQ(got.in_f16().overflow, e.fates.overflow) << what;
  EXPECT_EQ(got.in_f16().subnormal, e.fates.subnormal) << what;
  EXPECT_EQ(got.in_f16().flushed, e.fates.flushed) << what;
  EXPECT_EQ(got.changed_in_bf16(), e.changed) << what;
  for (int exponent = ExponentCounts::kLeast - 1; exponent <= ExponentCounts::kMost; ++exponent) {
    EXPECT_EQ(got.at(exponent), e.exponents[static_cast<size_t>(exponent + 127)])
        << what << " exponent " << exponent;
  }
}

TEST(ExponentLens, CountsAllSixteenBitPatternsAsACastDoes) {
  std::vector<half> halves(65536);
  std::vector<bfloat16> bfloats(65536);
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    halves[bits] = half::from_bits(static_cast<uint16_t>(bits));
    bfloats[bits] = bfloat16::from_bits(static_cast<uint16_t>(bits));
  }
  const ExponentCounts f16(count_exponents(tensor_of(halves, {65536})));
  const Expected casts = by_casts(halves);
  expect_same(f16, casts, "f16");
  EXPECT_EQ(f16.in_f16().subnormal, 2 * 1023);
  EXPECT_EQ(f16.in_f16().flushed, 0);
  EXPECT_EQ(f16.numel(), 65536);
  EXPECT_EQ(f16.largest(), 65504);
  EXPECT_EQ(f16.smallest(), 0x1p-24);
  const ExponentCounts bf16(count_exponents(tensor_of(bfloats, {65536})));
  expect_same(bf16, by_casts(bfloats), "bf16");
  EXPECT_EQ(bf16.changed_in_bf16(), 0);
  EXPECT_EQ(bf16.smallest(), 0x1p-133);
}

TEST(ExponentLens, CountsFloatsOfAllExponentsAsACastDoes) {
  for (size_t count : {0, 1, 7, 33, 2047, 2049, 20011}) {
    const std::vector<float> values = floats(count, 5);
    const ExponentCounts got(count_exponents(tensor_of(values, {static_cast<int64_t>(count)})));
    const Expected e = by_casts(values);
    expect_same(got, e, "f32");
    EXPECT_EQ(got.largest(), e.largest);
    EXPECT_EQ(got.smallest(), e.smallest);
    EXPECT_EQ(got.numel(), static_cast<int64_t>(count));
  }
}

TEST(ExponentLens, CountsDoublesAsACastDoes) {
  std::vector<double> values = {0x1p-25,
                                0x1.0000000000001p-25,
                                65519.99999999999,
                                65520,
                                0x1p1000,
                                0x1p-1000,
                                5e-324,
                                0x1.8p-130,
                                0x1p-133,
                                0x1.0000000000001p-14,
                                0x1.ff7ffffffffffp-15};
  for (float x : floats(4001, 6)) {
    values.push_back(static_cast<double>(x) * (1 + 0x1p-40));
    values.push_back(static_cast<double>(x));
  }
  expect_same(ExponentCounts(count_exponents(tensor_of(values, {8013}))), by_casts(values), "f64");
}

TEST(ExponentLens, SeesAnyLayoutOnce) {
  const std::vector<float> values = floats(6 * 5 * 4, 7);
  const Tensor x = tensor_of(values, {6, 5, 4});
  const Expected all = by_casts(values);
  expect_same(ExponentCounts(count_exponents(transpose(x, 0, 2))), all, "transposed");
  std::vector<float> part;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i / 4 % 5 >= 1 && i / 4 % 5 < 3) {
      part.push_back(values[i]);
    }
  }
  expect_same(ExponentCounts(count_exponents(slice(x, 1, 1, 3))), by_casts(part), "sliced");
  const ExponentCounts wide(count_exponents(expand(tensor_of<float>({3}, {1}), {100})));
  EXPECT_EQ(wide.at(1), 100);
}

TEST(ExponentLens, SeesTrueValuesThroughAPowerOfTwo) {
  const std::vector<float> values = floats(5003, 8, 60, 190);
  const Tensor counts = count_exponents(tensor_of(values, {5003}));
  for (int power : {-24, -1, 1, 16, 24}) {
    std::vector<float> kept;  // without extremes that leave the exact range when scaled
    for (float x : values) {
      if (!(std::abs(x) > 0x1p100f && std::isfinite(x)) && !(x != 0 && std::abs(x) < 0x1p-100f)) {
        kept.push_back(x);
      }
    }
    const Tensor part = tensor_of(kept, {static_cast<int64_t>(kept.size())});
    const ExponentCounts got(count_exponents(part), std::ldexp(1.0, power));
    const Expected e = by_casts(kept, -power);
    expect_same(got, e, "scaled");
    EXPECT_EQ(got.largest(), e.largest);
    EXPECT_EQ(got.smallest(), e.smallest);
    const HalfCounts back = got.in_f16(power);
    const HalfCounts held = by_casts(kept).fates;
    EXPECT_EQ(back.overflow, held.overflow);
    EXPECT_EQ(back.subnormal, held.subnormal);
    EXPECT_EQ(back.flushed, held.flushed);
  }
  EXPECT_THROW(ExponentCounts(counts, 1000), Error);
}

TEST(ExponentLens, AddsUp) {
  const std::vector<float> a = floats(301, 9), b = floats(77, 10, 100, 120);
  ExponentCounts sum;
  sum.add(ExponentCounts(count_exponents(tensor_of(b, {77}))));
  sum.add(ExponentCounts(count_exponents(tensor_of(a, {301}))));
  std::vector<float> both = a;
  both.insert(both.end(), b.begin(), b.end());
  expect_same(sum, by_casts(both), "sum");
  EXPECT_EQ(sum.largest(), by_casts(both).largest);
}

TEST(ExponentLens, ProposesTheLargestScaleThatFits) {
  EXPECT_EQ(static_scale(1), 0x1p15);
  EXPECT_EQ(static_scale(2), 0x1p14);
  EXPECT_EQ(static_scale(65503.0 / 1024), 0x1p10);
  EXPECT_EQ(static_scale(65504.0 / 1024), 0x1p9);
  EXPECT_EQ(static_scale(0), 0x1p24);
  EXPECT_EQ(static_scale(1e30), 0x1p-24);
  EXPECT_THROW(static_scale(INFINITY), Error);
  std::mt19937 generator(3);
  for (int i = 0; i < 200; ++i) {
    const double largest = std::ldexp(1 + generator() % 1000 / 1000.0, i % 40 - 20);
    const double scale = static_scale(largest);
    EXPECT_TRUE(scale == 0x1p-24 || largest * scale < 65504);
    EXPECT_TRUE(scale == 0x1p24 || largest * scale * 2 >= 65504);
  }
}

TEST(ExponentLens, TellsWhatEachScaleLoses) {
  const std::vector<float> values = floats(4003, 11, 80, 127);
  const ExponentCounts counts(count_exponents(tensor_of(values, {4003})));
  const double scales[] = {0x1p-8, 1, 8, 1024, 32768, 0x1p24};
  for (const ScaleEffects& row : scale_table(counts, scales)) {
    const Expected e = by_casts(values, std::ilogb(row.scale));
    EXPECT_EQ(row.fates.overflow, e.fates.overflow) << row.scale;
    EXPECT_EQ(row.fates.subnormal, e.fates.subnormal) << row.scale;
    EXPECT_EQ(row.fates.flushed, e.fates.flushed) << row.scale;
  }
}

template <class T>
int64_t lost_by_sums(const std::vector<float>& w, const std::vector<float>& after) {
  int64_t lost = 0;
  for (size_t i = 0; i < w.size(); ++i) {
    // Exact here, because the exponents of w and of the update differ by at most 20.
    const double update = static_cast<double>(after[i]) - static_cast<double>(w[i]);
    const auto before = static_cast<double>(T(w[i]));
    lost += update != 0 && static_cast<double>(T(before + update)) == before;
  }
  return lost;
}

TEST(ExponentLens, CountsUpdatesThatSixteenBitsLose) {
  std::mt19937 generator(4);
  std::vector<float> w, after;
  for (int i = 0; i < 20000; ++i) {
    // Cases near ties: a 16-bit weight and a step of about half its unit, also at powers of two.
    const int exponent = static_cast<int>(generator() % 30) - 16;
    const float mantissa = 1 + static_cast<float>(generator() % (i % 3 ? 128 : 2)) / 128;
    const float weight = std::ldexp(i % 2 ? mantissa : -mantissa, exponent);
    const float sizes[] = {0, 0.25, 0.5, 0.50001f, 0.49999f, 1, 2, 0.75};
    const float unit = std::ldexp(sizes[generator() % 8], exponent - (i % 5 ? 10 : 7));
    w.push_back(weight);
    after.push_back(weight + (generator() % 2 ? unit : -unit));
  }
  w.insert(w.end(), {0, 0, -0.0f, 65504, 65504, 0x1p-24f});
  after.insert(after.end(), {0x1p-25f, 0x1.1p-25f, -0x1p-25f, 65519, 65520, 0x1p-25f});
  const auto n = static_cast<int64_t>(w.size());
  const LostUpdates got =
      lost_updates(count_lost_updates(tensor_of(w, {n}), tensor_of(after, {n})));
  int64_t changed = 0;
  for (size_t i = 0; i < w.size(); ++i) {
    changed += w[i] != after[i];
  }
  EXPECT_EQ(got.changed, changed);
  EXPECT_EQ(got.in_f16, lost_by_sums<half>(w, after));
  EXPECT_EQ(got.in_bf16, lost_by_sums<bfloat16>(w, after));
  EXPECT_GT(got.in_f16, 1000);
  EXPECT_GT(got.in_bf16, got.in_f16);
}

TEST(ExponentLens, ErrorsNameTheProblem) {
  EXPECT_THROW(count_exponents(Tensor()), Error);
  EXPECT_THROW(count_exponents(zeros({2}, DType::i64)), Error);
  EXPECT_THROW(count_lost_updates(zeros({2}), zeros({3})), Error);
  EXPECT_THROW(ExponentCounts(zeros({3}, DType::i64)), Error);
}

}  // namespace
}  // namespace binade::exponents_test
