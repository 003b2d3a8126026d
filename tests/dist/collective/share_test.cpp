// Tests sharing numbers, texts and named tensors between ranks.
#include <binade/core/tensor/create.h>
#include <binade/dist/collective/share.h>
#include <binade/dist/job/threads.h>
#include <gtest/gtest.h>

namespace binade::dist::share_test {
namespace {

TEST(Share, Numbers) {
  run_threads(3, [](Communicator& group) {
    const double rank = group.rank();
    const auto sums = reduce_numbers(group, {rank, 0.1, -rank});
    check(sums == std::vector<double>({3, 0.1 + 0.1 + 0.1, -3}), "sums ", sums[0], ", ", sums[1]);
    check(reduce_numbers(group, {rank, 5}, ReduceOp::max) == std::vector<double>({2, 5}), "max");
    check(reduce_numbers(group, {}).empty(), "something came of nothing");
  });
}

TEST(Share, Texts) {
  const std::string binary("a\0b\xff", 4);
  for (const std::string& text : {std::string(), binary, std::string(100'000, 'x')}) {
    run_threads(3, [&](Communicator& group) {
      const std::string own = group.rank() == 1 ? text : "other";
      check(broadcast_text(group, own, 1) == text, "rank ", group.rank(), " got another text");
    });
  }
}

TEST(Share, NamedTensors) {
  run_threads(2, [](Communicator& group) {
    NamedTensors given;
    if (group.is_root()) {
      given = {{"fc.weight", from_values({1, 2, 3, 4, 5, 6}, {2, 3}, DType::f16)},
               {"", full({}, 7, DType::i64)},
               {"none", empty({0, 4}, DType::f64)}};
    }
    const NamedTensors got = broadcast_tensors(group, given);
    check(got.size() == 3, got.size(), " tensors");
    check(got[0].first == "fc.weight" && got[0].second.dtype() == DType::f16 &&
              got[0].second.sizes() == Dims({2, 3}) && got[0].second.at(4) == 5,
          "the first is ", got[0].first);
    check(got[1].first.empty() && got[1].second.item() == 7, "the second is ", got[1].first);
    check(got[2].second.sizes() == Dims({0, 4}), "the third has ", got[2].second.sizes());
    check(broadcast_tensors(group, {}).empty(), "something came of nothing");
  });
}

}  // namespace
}  // namespace binade::dist::share_test
