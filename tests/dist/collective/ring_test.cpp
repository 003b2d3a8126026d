#include <tests/dist/collective/ring_cases.h>
#include <tests/dist/job/ranks.h>

#include <cmath>

namespace binade::dist::ring_test {
namespace {

class Ring : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Ring, testing::Values(1, 2, 3, 4, 7));

const std::vector<int64_t> kSizes = {0, 1, 5, 1003};

TEST_P(Ring, IsExactWhereTheSumIs) {
  expect_no_errors(run_ranks(GetParam(), [](Transport& t) { exact_collectives(t, kSizes, {}); }));
}

TEST_P(Ring, IsExactInManyPieces) {
  expect_no_errors(run_ranks(GetParam(), [](Transport& t) {
    exact_collectives(t, {1, 300}, {.piece_bytes = 16});
    gather_and_broadcast(t, {0, 1, 300}, {.piece_bytes = 16});
  }));
}

TEST_P(Ring, IsExactWithF32Carry) {
  expect_no_errors(run_ranks(GetParam(), [](Transport& t) {
    exact_collectives(t, kSizes, {.f32_carry = true});
    exact_collectives(t, {77}, {.f32_carry = true, .piece_bytes = 32});
  }));
}

TEST_P(Ring, ReducesAndGathersRangesOfAnyLength) {
  expect_no_errors(run_ranks(GetParam(), [](Transport& t) {
    exact_ranges(t, kSizes, {});
    exact_ranges(t, {1, 300}, {.piece_bytes = 16});
    exact_ranges(t, {77}, {.f32_carry = true, .piece_bytes = 32});
  }));
}

TEST_P(Ring, GathersAndBroadcasts) {
  expect_no_errors(
      run_ranks(GetParam(), [](Transport& t) { gather_and_broadcast(t, kSizes, {}); }));
}

TEST_P(Ring, GivesTheSameBitsEverywhere) {
  expect_no_errors(run_ranks(GetParam(), [](Transport& t) {
    same_bits(t, 10'007, {.piece_bytes = 4096});
    same_bits(t, 999, {.f32_carry = true});
  }));
}

// Uses 10 MB of f32 and of f16.
TEST_P(Ring, IsExactForLargeTensors) {
  expect_no_errors(run_ranks(GetParam(), [](Transport& t) {
    for (const DType dtype : {DType::f32, DType::f16}) {
      const int64_t size = 10'000'000 / static_cast<int64_t>(binade::size_of(dtype)) + 1;
      const Tensor x = rank_values(size, t.rank(), t.size(), dtype);
      ring_all_reduce(t, x, ReduceOp::sum);
      check_values(x, 0, t.size(), ReduceOp::sum, "large");
    }
  }));
}

// The sum of 60000 over 7 ranks overflows f16, but the average does not.
TEST(RingHalf, DividesBeforeTheSum) {
  for (const bool carry : {false, true}) {
    expect_no_errors(run_ranks(7, [&](Transport& t) {
      const Tensor x = full({100}, 60000, DType::f16);
      ring_all_reduce(t, x, ReduceOp::avg, {.f32_carry = carry});
      check(std::abs(x.at(7) - 60000) <= 64, "the average is ", x.at(7));
    }));
  }
}

// In 1 + 2^-11 + 2^-11 + 2^-11 each step rounds the small term away, unless sums are sent as f32.
TEST(RingHalf, CarryRoundsOnce) {
  for (const bool carry : {false, true}) {
    expect_no_errors(run_ranks(4, [&](Transport& t) {
      const Tensor x = full({4}, t.rank() == 1 ? 1.0 : 0x1p-11, DType::f16);
      ring_all_reduce(t, x, ReduceOp::sum, {.f32_carry = carry});
      // Segment 0 starts at rank 1: 1 + 2^-11 is a tie and rounds to 1, three times.
      check(x.at(0) == (carry ? 1 + 0x1p-9 : 1.0), "got ", x.at(0));
    }));
  }
}

TEST(RingBytes, EachRankSendsTwiceItsShare) {
  expect_no_errors(run_ranks(4, [](Transport& t) {
    const Tensor x = zeros({4000});
    ring_all_reduce(t, x, ReduceOp::sum);
    check(t.bytes_sent() == 2 * 3 * 4000, "sent ", t.bytes_sent());
  }));
}

}  // namespace
}  // namespace binade::dist::ring_test
