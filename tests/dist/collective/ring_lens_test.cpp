#include <binade/core/tensor/create.h>
#include <binade/dist/collective/ring.h>
#include <binade/dist/collective/ring_lens.h>
#include <tests/dist/job/ranks.h>
#include <tests/support/error_of.h>

#include <cstring>

namespace binade::dist::ring_lens_test {
namespace {

std::vector<Tensor> random_ranks(int n, int64_t count) {
  manual_seed(11);
  std::vector<Tensor> ranks;
  for (int rank = 0; rank < n; ++rank) {
    ranks.push_back(randn({count}).to(DType::f64));
  }
  return ranks;
}

std::vector<ReductionChoice> all_choices(DType dtype) {
  std::vector<ReductionChoice> out;
  for (const bool carry : {false, true}) {
    for (const Division division : {Division::none, Division::before, Division::after}) {
      for (const ReductionOrder order : {ReductionOrder::ring, ReductionOrder::tree}) {
        out.push_back({dtype, carry, division, order});
      }
    }
  }
  return out;
}

// The lens must have exactly the bits of the ring.
TEST(RingLens, HasTheBitsOfTheRing) {
  for (const int n : {1, 2, 3, 5}) {
    const std::vector<Tensor> values = random_ranks(n, 1003);
    for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
      for (const bool carry : {false, true}) {
        for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg}) {
          const Division division = op == ReduceOp::sum ? Division::none
                                    : is_half(dtype)    ? Division::before
                                                        : Division::after;
          const Tensor seen = reduce_as(values, {dtype, carry, division, ReductionOrder::ring});
          expect_no_errors(run_ranks(n, [&](Transport& t) {
            const Tensor x = values[static_cast<size_t>(t.rank())].to(dtype).contiguous();
            const Tensor y = empty({x.numel()}, dtype);
            y.copy_(x);
            ring_all_reduce(t, y, op, {.f32_carry = carry, .piece_bytes = 256});
            check(std::memcmp(y.view().data, seen.view().data,
                              static_cast<size_t>(y.numel()) * size_of(dtype)) == 0,
                  n, " ranks, ", to_string(ReductionChoice{dtype, carry, division}));
          }));
        }
      }
    }
  }
}

TEST(RingLens, FindsNoErrorWhereThereIsNone) {
  std::vector<Tensor> ranks;
  for (int rank = 0; rank < 6; ++rank) {
    ranks.push_back(from_values({4.0 * rank, -8, 0, 16, 4, -4.0 * rank, 8}, {7}, DType::f64));
  }
  ranks.resize(4);  // a division by 4 is exact, too
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const ReductionChoice& choice : all_choices(dtype)) {
      std::vector<HopError> hops;
      const Tensor y = reduce_as(ranks, choice, &hops);
      EXPECT_EQ(hops.size(), choice.order == ReductionOrder::ring ? 3u : 2u);
      EXPECT_EQ(y.at(0), choice.division == Division::none ? 24 : 6) << to_string(choice);
      for (const HopError& hop : hops) {
        EXPECT_EQ(hop.relative, 0) << to_string(choice);
        EXPECT_EQ(hop.ulps, 0) << to_string(choice);
        EXPECT_EQ(hop.infinite + hop.lost, 0) << to_string(choice);
      }
    }
  }
}

// The terms are 1 and three times 2^-11; the exact sum is 1 + 1.5 * 2^-10. Without f32 carry every
// step after the 1 loses half a unit; in a tree only one pair adds small terms first.
TEST(RingLens, CountsWhatEachHopLoses) {
  std::vector<Tensor> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.push_back(full({1}, rank == 0 ? 1.0 : 0x1p-11, DType::f64));
  }
  std::vector<HopError> hops;
  // The single element is in segment 3, which starts at rank 0.
  EXPECT_EQ(reduce_as(ranks, {DType::f16}, &hops).at(0), 1);
  ASSERT_EQ(hops.size(), 3u);
  EXPECT_EQ(hops[0].ulps, 0.5);
  EXPECT_EQ(hops[1].ulps, 1);
  EXPECT_EQ(hops[2].ulps, 1.5);
  EXPECT_DOUBLE_EQ(hops[2].relative, 1.5 * 0x1p-10 / (1 + 1.5 * 0x1p-10));
  EXPECT_EQ(reduce_as(ranks, {DType::f16, true}, &hops).at(0), 1 + 0x1p-9);
  EXPECT_EQ(hops[1].ulps, 0);
  EXPECT_EQ(hops[2].ulps, 0.5);
  EXPECT_EQ(
      reduce_as(ranks, {DType::f16, false, Division::none, ReductionOrder::tree}, &hops).at(0),
      1 + 0x1p-10);
  ASSERT_EQ(hops.size(), 2u);
  EXPECT_EQ(hops[0].ulps, 0.5);
  EXPECT_EQ(hops[1].ulps, 0.5);
}

TEST(RingLens, CountsWhatOverflowsAndWhatIsLost) {
  std::vector<Tensor> ranks(4, from_values({60000, 0x1p-24, 1}, {3}, DType::f64));
  for (const ReductionOrder order : {ReductionOrder::ring, ReductionOrder::tree}) {
    std::vector<HopError> hops;
    reduce_as(ranks, {DType::f16, false, Division::after, order}, &hops);
    EXPECT_EQ(hops.back().infinite, 1);
    EXPECT_EQ(hops.back().lost, 0);
    reduce_as(ranks, {DType::f16, false, Division::before, order}, &hops);
    EXPECT_EQ(hops.back().infinite, 0);
    EXPECT_EQ(hops.back().lost, 1);
    reduce_as(ranks, {DType::f16, true, Division::after, order}, &hops);
    EXPECT_EQ(hops.back().infinite + hops.back().lost, 0);
  }
}

TEST(RingLens, TablesEveryChoice) {
  const RingLensReport report = ring_lens(from_values({1, 2, 3, 4}, {4}), "values",
                                          {.ranks = {2, 4}, .dtypes = {DType::bf16}});
  ASSERT_EQ(report.rows.size(), 2u * 12);
  EXPECT_EQ(report.elements, 4);
  const std::string table = to_text(report);
  EXPECT_NE(table.find("values: 4 elements on every rank"), std::string::npos) << table;
  EXPECT_NE(table.find("4      bf16   f32         average, divided after   tree   0"),
            std::string::npos)
      << table;
  const std::string json = to_json(report);
  EXPECT_NE(json.find("{\"ranks\": 2, \"dtype\": \"bf16\", \"f32_carry\": false, \"division\": "
                      "\"none\", \"order\": \"ring\", \"hops\": [{\"relative\": 0, \"ulps\": 0, "
                      "\"infinite\": 0, \"lost\": 0}]}"),
            std::string::npos)
      << json;
}

TEST(RingLens, NamesWhatDoesNotFit) {
  EXPECT_EQ(error_of([] { ring_lens(full({3}, 1, DType::i32), "x"); }),
            "ring lens: got i32 of 3 elements, expected 1 to 2^31 - 1 floating ones");
  EXPECT_EQ(error_of([] { ring_lens(full({3}, 1), "x", {.ranks = {1}}); }),
            "ring lens: got 1 ranks, expected 2 to 4096");
  EXPECT_EQ(error_of([] {
              reduce_as({full({3}, 1), full({3}, 1)}, {});
            }),
            "ring lens: got f32 of 3 elements, expected 3 contiguous elements of f64 on the CPU");
}

}  // namespace
}  // namespace binade::dist::ring_lens_test
