// A checkpoint of a loop of your own goes only to the parts and the loader that it was made of.
#include <binade/binade.h>
#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/loop_run.h"
#include "tests/train/run_owners.h"

namespace binade::train::loop_checkpoint_parts_test {
namespace {

using binade::testing::TemporaryDirectory;
using Net = test::LoopNet;

// Two networks of one class fit each other's file. Their names tell them apart, in any order of the
// parts; two of one kind without names are an error of both calls.
TEST(LoopCheckpointParts, PartsAreToldApartByNames) {
  const TemporaryDirectory directory;
  const std::string path = directory / "run";
  Net a, b;
  optim::SGD sgd(a.parameters(), {.lr = 0.1}), other(b.parameters(), {.lr = 0.2});
  const std::vector<std::string> words = {"got two parts of kind model without a name",
                                          "named(\"target\", net)"};
  expect_parts(error_of([&] { save_checkpoint(path, a, b); }), words);
  expect_parts(error_of([&] { load_checkpoint(path, b, a); }), words);
  expect_parts(error_of([&] { state_hash({a, b}); }), words);
  expect_parts(error_of([&] { save_checkpoint(path, a, sgd, named("b", b), other); }),
               {"got two parts of kind optimizer without a name"});
  ASSERT_TRUE(save_checkpoint(path, a, sgd, named("b", b), named("of-b", other)));
  Net c, d;
  optim::SGD of_c(c.parameters(), {.lr = 1}), of_d(d.parameters(), {.lr = 1});
  ASSERT_TRUE(load_checkpoint(path, named("of-b", of_d), named("b", d), of_c, c));
  EXPECT_EQ(state_hash(c.state()), state_hash(a.state()));
  EXPECT_EQ(state_hash(d.state()), state_hash(b.state()));
  EXPECT_EQ(of_c.lr(), 0.1);
  EXPECT_EQ(of_d.lr(), 0.2);
}

// In the middle of an epoch another order would bring some samples twice and others never.
TEST(LoopCheckpointParts, APositionInMidEpochNeedsTheOrder) {
  const TemporaryDirectory directory;
  const std::string path = directory / "run";
  Net net;
  data::test::FakeDataset data(22);
  data::Loader loader(data, {.batch = 4, .workers = 0});
  data::Loader reseeded(data, {.batch = 4, .workers = 0, .seed = 9});
  LoaderPosition at{.epoch = 1, .batch = 2, .loader = &loader}, now{.loader = &reseeded};
  save_checkpoint(path, net, at);
  expect_parts(error_of([&] { load_checkpoint(path, net, now); }),
               {"got training data shuffled with seed 9 in the middle of an epoch",
                "shuffled with seed 0", "(part 'position' of "});
  EXPECT_EQ(now.epoch, 0);
  at = {.epoch = 2, .batch = 0, .loader = &loader};
  save_checkpoint(path, net, at);
  EXPECT_TRUE(load_checkpoint(path, net, now)) << "between epochs the order may change";
  EXPECT_EQ(now.epoch, 2);
}

}  // namespace
}  // namespace binade::train::loop_checkpoint_parts_test
