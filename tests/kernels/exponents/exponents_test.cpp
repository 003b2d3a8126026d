// Tests exponent counts on any device: they repeat for any number of threads and any alignment, and
// add to the existing counts. tests/core/observe/exponents_test.cpp tests their meaning.
#include <binade/kernels/exponents/exponent_keys.h>
#include <binade/kernels/exponents/exponents.h>
#include <tests/kernels/support/array_values.h>

namespace binade::kernels::exponents_test {
namespace {

// An integer result.
class Counts {
 public:
  explicit Counts(const std::vector<int64_t>& start) : bytes_(raw(start)) {}
  View view() {
    return on_test_device(
        view_of(bytes_.device(), DType::i64, {static_cast<int64_t>(bytes_.host().size() / 8)}));
  }
  std::vector<int64_t> values() const {
    std::vector<int64_t> out(bytes_.host().size() / 8);
    std::memcpy(out.data(), bytes_.host().data(), bytes_.host().size());
    return out;
  }
  const std::vector<std::byte>& bytes() const { return bytes_.host(); }

 private:
  static std::vector<std::byte> raw(const std::vector<int64_t>& values) {
    std::vector<std::byte> bytes(values.size() * 8);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  DeviceBytes bytes_;
};

Counts counts() { return Counts(std::vector<int64_t>(kExponentCounters)); }

TEST(CountExponents, AddsToTheResultAtAnyAlignment) {
  for (DType dtype : floating_dtypes()) {
    for (int64_t count : {0, 1, 31, 257, 5001}) {
      for (int64_t offset : {0, 1, 3}) {
        StridedArray all = make_array(dtype, {count + offset},
                                      random_values(static_cast<size_t>(count + offset), 3));
        const Values values = values_of(all);
        View x = all.view();
        x.data += offset * static_cast<int64_t>(size_of(dtype));
        x.sizes = {count};
        x.numel = count;
        Counts result = counts();
        count_exponents({.x = x, .result = result.view()});
        count_exponents({.x = x, .result = result.view()});
        std::vector<int64_t> expected(kExponentCounters);
        for (size_t i = static_cast<size_t>(offset); i < values.size(); ++i) {
          expected[exponent_key(values[i])] += 2;
          const uint32_t bits = magnitude_bits(values[i]);
          expected[kExponentKeys] = std::max<int64_t>(expected[kExponentKeys], bits);
          expected[kExponentKeys + 1] = std::max<int64_t>(expected[kExponentKeys + 1], ~bits);
        }
        EXPECT_EQ(result.values(), expected) << to_string(dtype) << " " << count;
      }
    }
  }
}

TEST(CountExponents, OneExponentFillsOneBin) {  // all increments hit the same counter
  StridedArray x = make_array(DType::f32, {70001}, Values(70001, 1.5));
  Counts result = counts();
  count_exponents({.x = x.view(), .result = result.view()});
  EXPECT_EQ(result.values()[exponent_key(1.5f)], 70001);
}

TEST(CountExponents, DoesNotDependOnThreads) {
  const size_t count = every_combination() ? 1100003 : 9001;
  StridedArray x =
      make_array(DType::f16, {static_cast<int64_t>(count)}, random_values(count, 5, 0, 1e-3));
  expect_thread_invariant([&] {
    Counts result = counts();
    count_exponents({.x = x.view(), .result = result.view()});
    return result.bytes();
  });
}

TEST(CountLostUpdates, AddsToTheResultForAnyNumberOfThreads) {
  const size_t count = every_combination() ? 100003 : 5003;
  const auto n = static_cast<int64_t>(count);
  const Values w = random_values(count, 6);
  Values after = random_values(count, 7, 0, 1e-3);
  for (size_t i = 0; i < count; ++i) {
    after[i] += w[i];
  }
  StridedArray a = make_array(DType::f32, {n}, w), b = make_array(DType::f32, {n}, after);
  expect_thread_invariant([&] {
    Counts result({1, 2, 3});
    count_lost_updates({.before = a.view(), .after = b.view(), .result = result.view()});
    const std::vector<int64_t> got = result.values();
    EXPECT_GT(got[0], n - n / 100);
    EXPECT_GT(got[1], 2);
    EXPECT_GT(got[2], got[1]);
    return result.bytes();
  });
}

// Compares the rule for vectors with that for one element: weights of all magnitudes near the
// rounding of f16 and bf16 and updates of about half a unit, each repeated eight times, the most in
// a vector. A device, whose threads all use the rule for one element, tries only some exponents.
TEST(CountLostUpdates, EveryLaneFollowsTheRule) {
  int64_t half_lost = 0;
  for (int exponent = -30; exponent <= 18; exponent += every_combination() ? 1 : 5) {
    for (const double fraction :
         {1.0, 1.0 + 0x1p-11, 1.0 + 0x1p-10, 1.0 + 0x1p-8, 1.0 + 0x1p-7, 1.4142, 2 - 0x1p-12}) {
      for (const double unit :
           {0x1p-26, 0x1p-25, 0x1p-24, 0x1p-13, 0x1p-12, 0x1p-11, 0x1p-9, 0x1p-8}) {
        for (const double sign : {1.0, -1.0, 1.001, -0.999}) {
          const double scale = unit < 0x1p-20 ? 1 : std::ldexp(1.0, exponent);
          const auto w = static_cast<float>(std::ldexp(fraction, exponent));
          const auto after = static_cast<float>(w + sign * unit * scale);
          const double update = static_cast<double>(after) - static_cast<double>(w);
          const Values many(8, w), moved(8, after);
          StridedArray a = make_array(DType::f32, {8}, many),
                       b = make_array(DType::f32, {8}, moved);
          Counts result({0, 0, 0});
          count_lost_updates({.before = a.view(), .after = b.view(), .result = result.view()});
          const int64_t differs = update != 0 ? 8 : 0;
          const std::vector<int64_t> expected = {differs, differs * update_is_lost<half>(w, update),
                                                 differs * update_is_lost<bfloat16>(w, update)};
          EXPECT_EQ(result.values(), expected) << w << " + " << update;
          half_lost += expected[1];
        }
      }
    }
  }
  EXPECT_GT(half_lost, every_combination() ? 1000 : 200);
}

TEST(CountExponents, ErrorsNameTheProblem) {
  StridedArray x(DType::f32, {4});
  Counts whole({1, 2, 3, 4}), result = counts();
  EXPECT_EQ(error_of([&] { count_exponents({.x = whole.view(), .result = result.view()}); }),
            "count_exponents: got x i64 [4], expected a contiguous tensor of a floating dtype");
  EXPECT_EQ(error_of([&] { count_exponents({.x = x.view(), .result = x.view()}); }),
            "count_exponents: got result f32 [4], expected a contiguous i64 [2050]");
  EXPECT_EQ(error_of([&] {
              count_lost_updates({.before = x.view(), .after = whole.view(), .result = x.view()});
            }),
            "count_lost_updates: got after i64 [4], expected f32 like before [4]");
}

}  // namespace
}  // namespace binade::kernels::exponents_test
