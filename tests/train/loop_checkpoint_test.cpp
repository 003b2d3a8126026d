// Tests save_checkpoint() and load_checkpoint(): a loop that died continues bit for bit, and a load
// that does not fit changes nothing.
#include <binade/binade.h>

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "tests/support/child_process.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"
#include "tests/train/checkpoint_samples.h"
#include "tests/train/loop_run.h"
#include "tests/train/run_owners.h"
#include "tests/train/scripted_run.h"

// A user's function with the same name, in a scope that also sees the library's names.
namespace user {
using namespace binade;  // NOLINT
std::string save(const std::string& path, const nn::Module& model) {
  return text(path, " ", model.parameter_count());
}
std::string call(const nn::Module& model) { return save("mine", model); }
}  // namespace user

namespace binade::train::loop_checkpoint_test {
namespace {

namespace fs = std::filesystem;
using binade::testing::run_child;
using binade::testing::TemporaryDirectory;
using test::Loop;
using Net = test::LoopNet;

TEST(LoopCheckpoint, ALoopThatDiedGoesOnBitForBit) {
  const TemporaryDirectory directory;
  Loop whole(5);
  whole.run(directory / "whole");
  const std::string expected = whole.record();
  for (const int64_t died_after : {0, 1, 2, 5, 6, 7, 12, 17, 18}) {
    SCOPED_TRACE(died_after);
    const std::string path = directory / text("run-", died_after);
    Loop(5).run(path, died_after);
    close_checkpoints(path);
    Loop again(died_after > 1 ? 99 : 5);
    EXPECT_EQ(load_checkpoint({.path = path}, again.parts()), died_after > 1);
    again.run(path);
    EXPECT_EQ(again.record(), expected);
    close_checkpoints(path);
  }
}

// Delayed scales are saved with the model; an independent model has its own histories.
TEST(LoopCheckpoint, DelayedScalesGoOnBitForBit) {
  const FormatScheme scheme = format_scheme("e4m3fn/delayed=3");
  const Precision precision =
      with_formats(Precision::mixed(DType::f16),
                   {.weights = scheme, .activations = scheme, .gradients = scheme});
  const TemporaryDirectory directory;
  Loop whole(5, precision);
  whole.run(directory / "whole");
  EXPECT_FALSE(nn::format_histories(*whole.model).empty());
  EXPECT_TRUE(nn::format_histories(*whole.target).empty());  // another model, which did not run
  for (const int64_t died_after : {2, 5, 12, 17}) {
    const std::string path = directory / text("run-", died_after);
    Loop(5, precision).run(path, died_after);
    close_checkpoints(path);
    Loop again(99, precision);
    EXPECT_TRUE(load_checkpoint({.path = path}, again.parts()));
    again.run(path);
    EXPECT_EQ(again.record(), whole.record());
    EXPECT_EQ(state_hash(again.parts()), state_hash(whole.parts()));
  }
  // A failed load changes no history; a load of an older checkpoint empties them.
  const std::string hash = state_hash(whole.parts());
  NamedTensors bad = nn::format_histories(*whole.model);
  bad.emplace_back("0/nonsense", ones({1}));
  EXPECT_THROW(nn::load_format_histories(*whole.model, bad), Error);
  EXPECT_EQ(state_hash(whole.parts()), hash);
  nn::load_format_histories(*whole.model, {});
  EXPECT_NE(state_hash(whole.parts()), hash);
}

// Every part is needed: without it the loop ends differently or does not resume.
TEST(LoopCheckpoint, EveryPartCounts) {
  const TemporaryDirectory directory;
  Loop whole(5);
  whole.run(directory / "whole");
  const std::string expected = whole.record();
  for (size_t left_out = 0; left_out < whole.parts().size(); ++left_out) {
    const std::string path = directory / text("run-", left_out);
    Loop first(5);
    std::vector<CheckpointPart> parts = first.parts();
    parts.erase(parts.begin() + static_cast<int64_t>(left_out));
    first.run(directory / text("other-", left_out), 8);
    if (error_of([&] { save_checkpoint(path, parts); }) != "none") {
      continue;  // an optimizer needs its model, a schedule its optimizer
    }
    Loop again(99);
    parts = again.parts();
    parts.erase(parts.begin() + static_cast<int64_t>(left_out));
    ASSERT_TRUE(load_checkpoint(path, parts));
    again.run(directory / text("another-", left_out));
    EXPECT_NE(again.record(), expected) << "without part " << left_out;
  }
}

TEST(LoopCheckpoint, FormsOfTheCall) {
  const TemporaryDirectory directory;
  const std::string path = directory / "run";
  Net a, b;
  int64_t step = 7;
  optim::SGD sgd(a.parameters(), {.lr = 0.1});
  EXPECT_TRUE(save_checkpoint(path, a, sgd, named("step", step), named("other", b)));
  EXPECT_TRUE(fs::exists(path + "/checkpoint/step-00000000/model.safetensors"));
  Net c, d;
  optim::SGD other(c.parameters(), {.lr = 0.5});
  step = 0;
  EXPECT_TRUE(load_checkpoint({.path = path}, {{"step", step}, {"other", d}, c, other}));
  EXPECT_EQ(step, 7);
  EXPECT_EQ(other.lr(), 0.1);
  EXPECT_EQ(state_hash(c.state()), state_hash(a.state()));
  EXPECT_EQ(state_hash(d.state()), state_hash(b.state()));
  Net e;
  load_model(path + "/checkpoint/step-00000000/other.safetensors", e);
  EXPECT_EQ(state_hash(e.state()), state_hash(b.state()));
  EXPECT_EQ(user::call(a), text("mine ", a.parameter_count()));
}

TEST(LoopCheckpoint, WrongPartsAreOneError) {
  const TemporaryDirectory directory;
  const std::string path = directory / "run";
  Net net;
  optim::SGD sgd(net.parameters(), {.lr = 0.1});
  Numbers numbers{{"a", 1}};
  double x = 3;
  save_checkpoint(path, net, sgd, numbers, named("x", x));
  const auto refused = [&](const std::vector<CheckpointPart>& parts,
                           const std::vector<std::string>& words) {
    const std::string before = state_hash(net.state());
    expect_parts(error_of([&] { load_checkpoint(path, parts); }), words);
    EXPECT_EQ(state_hash(net.state()), before);
  };
  refused({net, sgd}, {"the parts are not those of", "; not given: 'numbers', 'x'; expected"});
  optim::LossScaler scaler;
  refused({net, sgd, numbers, {"x", x}, scaler}, {"; it does not have 'scaler';"});
  int64_t whole = 0;
  refused({net, sgd, numbers, {"x", whole}}, {"'x' is of kind integer, but was number"});
  refused({}, {"load_checkpoint: got no parts"});
  refused({net, {"twice", net}}, {"got one object as two parts, 'model' and 'twice'"});
  refused({{"a", x}, {"a", whole}}, {"got two parts of the name 'a'"});
  EXPECT_NE(error_of([&] { CheckpointPart("a/b", x); }).find("got a part of the name 'a/b'"),
            std::string::npos);
  EXPECT_NE(error_of([&] { CheckpointPart("", x); }).find("without a name"), std::string::npos);
}

// In a run with masters the second model does not fit: the first keeps its values, masters and
// moments.
TEST(LoopCheckpoint, ALoadThatDoesNotFitChangesNothing) {
  const TemporaryDirectory directory;
  const std::string path = directory / "run";
  Loop loop(1);
  loop.run(directory / "other", 3);
  Net small(3), large(9);
  std::vector<CheckpointPart> parts = loop.parts();
  parts.emplace_back("last", small);
  save_checkpoint(path, parts);
  Loop now(2);
  now.run(directory / "another", 5);
  const std::string before = now.record();
  parts = now.parts();
  parts.emplace_back("last", large);
  expect_parts(error_of([&] { load_checkpoint(path, parts); }),
               {"first.weight", "(part 'last' of ", "nothing was changed"});
  EXPECT_EQ(now.record(), before);
  // The checkpoint has a number that its variable cannot hold.
  int8_t tiny = 3;
  int64_t wide = 300;
  save_checkpoint(directory / "tiny", small, named("n", wide));
  expect_parts(error_of([&] { load_checkpoint(directory / "tiny", small, named("n", tiny)); }),
               {"got the number 300", "(part 'n' of "});
  EXPECT_EQ(tiny, 3);
  Tensor t = zeros({3}), u = zeros({4});
  save_checkpoint(directory / "tensor", named("t", t));
  expect_parts(error_of([&] { load_checkpoint(directory / "tensor", named("t", u)); }),
               {"got a tensor f32 [4], expected f32 [3]"});
}

TEST(LoopCheckpoint, AnotherOptimizerIsRefused) {
  const TemporaryDirectory directory;
  Net net;
  optim::SGD sgd(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  net(ones({2, 48})).backward(ones({2, 10}));
  (void)sgd.step();
  save_checkpoint(directory / "run", net, sgd);
  Net other;
  optim::AdamW adam(other.parameters(), {.lr = 0.1});
  const std::string before = state_hash(other.state());
  expect_parts(error_of([&] { load_checkpoint(directory / "run", other, adam); }),
               {"exp_avg", "(part 'optimizer' of"});
  EXPECT_EQ(state_hash(other.state()), before);
}

TEST(LoopCheckpoint, AStateThatIsNotFiniteIsNotSaved) {
  const TemporaryDirectory directory;
  Net net;
  ASSERT_TRUE(save_checkpoint(directory / "run", net));
  const std::string good = state_hash(net.state());
  {
    const NoGradGuard guard;
    net.last.bias.fill_(std::nan(""));
  }
  test::Warnings warnings;
  EXPECT_FALSE(save_checkpoint(directory / "run", net));
  expect_parts(warnings.all,
               {"save_checkpoint: nothing is saved, last.bias", "of the part 'model'"});
  EXPECT_TRUE(load_checkpoint(directory / "run", net));
  EXPECT_EQ(state_hash(net.state()), good);
}

TEST(LoopCheckpoint, ASaveInTheBackgroundHasTheStateOfItsCall) {
  const TemporaryDirectory directory;
  const CheckpointOptions run{.path = directory / "run", .async_save = true};
  Net net;
  for (int i = 0; i < 20; ++i) {
    const std::string saved = state_hash(net.state());
    ASSERT_TRUE(save_checkpoint(run, net));
    {
      const NoGradGuard guard;
      net.first.weight.fill_(i);
      net.calls += 1.0;
    }
    if (i % 3 == 0) {
      close_checkpoints(run.path);
    }
    EXPECT_TRUE(load_checkpoint(run, net));
    EXPECT_EQ(state_hash(net.state()), saved);
    const NoGradGuard guard;
    net.last.bias.fill_(i);
  }
  EXPECT_EQ(names_in(run.path + "/checkpoint").size(), 2u);
}

TEST(LoopCheckpoint, TheErrorOfASaveInTheBackgroundIsThatOfTheNextCall) {
  const TemporaryDirectory directory;
  Net net;
  for (const bool closes : {false, true}) {
    const CheckpointOptions run{.path = directory / text("run-", closes), .async_save = true};
    ASSERT_TRUE(save_checkpoint(run, net));
    ASSERT_TRUE(load_checkpoint(run, net));  // waits
    // A file has taken the place of the folder of checkpoints.
    fs::remove_all(run.path + "/checkpoint");
    std::ofstream(run.path + "/checkpoint") << "no directory";
    const std::string error = error_of([&] {
      save_checkpoint(run, net);
      closes ? close_checkpoints(run.path) : void(save_checkpoint(run, net));
    });
    expect_parts(error, {"checkpoint"});
    EXPECT_EQ(error_of([&] { close_checkpoints(run.path); }), "none");
  }
}

TEST(LoopCheckpoint, AnEarlierRunIsNotOverwritten) {
  const TemporaryDirectory directory;
  const std::string path = directory / "run";
  Net net, other;
  save_checkpoint(path, net);
  close_checkpoints(path);
  const auto before = tree(path);
  expect_parts(
      error_of([&] { save_checkpoint(path, other); }),
      {"which has checkpoints of an earlier run", "load_checkpoint() first", "--overwrite"});
  expect_parts(error_of([&] { save_checkpoint({.path = path, .resume = false}, other); }),
               {"of an earlier run"});
  close_checkpoints(path);
  EXPECT_EQ(tree(path), before);
  expect_parts(error_of([&] { load_checkpoint({.path = path, .resume = false}, other); }),
               {"run directory: got ", "not empty", "--resume", "--overwrite"});
  EXPECT_EQ(tree(path), before);
  EXPECT_FALSE(load_checkpoint({.path = path, .overwrite = true}, other));
  EXPECT_TRUE(save_checkpoint(path, other));
  EXPECT_TRUE(fs::exists(path + ".replaced-1/checkpoint/step-00000000/model.safetensors"));
  close_checkpoints(path + "/");
  EXPECT_TRUE(load_checkpoint(path, net));
  EXPECT_EQ(state_hash(net.state()), state_hash(other.state()));
  expect_parts(error_of([&] { load_checkpoint("", net); }), {"got an empty path"});
}

TEST(LoopCheckpoint, OneProcessAtATime) {
  const TemporaryDirectory directory;
  const std::string path = directory / "run";
  Net net;
  EXPECT_FALSE(load_checkpoint(path, net));
  const std::string error = error_of([&] { RunDirectory second(path, true, false); });
  expect_parts(error, {"run directory: got ", "uses"});
  // A child of fork() must not write into its parent's run.
  EXPECT_TRUE(run_child([&] {
    if (error_of([&] { save_checkpoint(path, net); }).find("forked") == std::string::npos) {
      ::_exit(1);
    }
  }));
  EXPECT_TRUE(save_checkpoint(path, net));
  close_checkpoints(path);
  EXPECT_FALSE(fs::exists(path + "/lock"));
}

TEST(LoopCheckpoint, StepsRiseAndTwoStay) {
  const TemporaryDirectory directory;
  const std::string path = directory / "run", checkpoints = path + "/checkpoint";
  Net net;
  optim::SGD sgd(net.parameters(), {.lr = 0.1});
  const auto train = [&] {
    net(ones({2, 48})).backward(ones({2, 10}));
    (void)sgd.step();
    save_checkpoint(path, net, sgd);
  };
  train(), train(), train();
  EXPECT_EQ(names_in(checkpoints), (Names{"step-00000002", "step-00000003"}));
  optim::SGD fresh(net.parameters(),
                   {.lr = 0.1});  // counts from 0, but its checkpoint is the newest
  save_checkpoint(path, net, fresh);
  EXPECT_EQ(names_in(checkpoints), (Names{"step-00000003", "step-00000004"}));
  save_checkpoint({.path = path, .step = 90}, net, fresh);
  expect_parts(error_of([&] { save_checkpoint({.path = path, .step = 89}, net, fresh); }),
               {"got step 89", "has one of step 90"});
  // If the newest checkpoint is damaged, the one before it is loaded.
  flip(checkpoints + "/step-00000090/model.safetensors");
  test::Warnings warnings;
  EXPECT_TRUE(load_checkpoint(path, net, fresh));
  expect_parts(warnings.all, {"step-00000090", "damaged"});
}

TEST(LoopCheckpoint, SettingsAndDataAreCompared) {
  const TemporaryDirectory directory;
  const std::string path = directory / "run";
  Net net;
  data::test::FakeDataset data(22), more(23);
  data::Loader loader(data, {.batch = 4, .workers = 0});
  data::Loader other(more, {.batch = 4, .workers = 0}), wider(data, {.batch = 5, .workers = 0});
  LoaderPosition at{.epoch = 1, .batch = 2, .loader = &loader};
  save_checkpoint({.path = path, .settings = {{"lr", "0.1"}}}, net, at);
  expect_parts(error_of([&] {
                 load_checkpoint({.path = path, .settings = {{"lr", "0.2"}}}, net, at);
               }),
               {"resume: got lr = 0.2", "was trained with lr = 0.1"});
  LoaderPosition now{.loader = &other};
  expect_parts(error_of([&] { load_checkpoint(path, net, now); }),
               {"resume: got 23 samples instead of 22 in the loader", "(part 'position' of "});
  EXPECT_EQ(now.epoch, 0);
  test::Warnings warnings;
  EXPECT_TRUE(load_checkpoint({.path = path, .force = true}, net, now));
  expect_parts(warnings.all, {"resume: got 23 samples instead of 22"});
  EXPECT_EQ(now.batch, 2);
  now = {.loader = &wider};
  expect_parts(error_of([&] { load_checkpoint(path, net, now); }),
               {"got a loader of batch 5", "expected 4 as before"});
  now = {};
  EXPECT_TRUE(load_checkpoint(path, net, now));
  EXPECT_EQ(now.epoch, 1);
}

TEST(LoopCheckpoint, ATrainersCheckpointIsTold) {
  const TemporaryDirectory directory;
  const std::string path = directory / "run";
  {
    CheckpointStore store(path);
    save(store, 1);
  }
  Net net;
  expect_parts(error_of([&] { load_checkpoint(path, net); }), {"which a Trainer saved"});
}

// Every rank calls the functions; rank 0 reads and writes.
TEST(LoopCheckpoint, RanksShareOne) {
  const TemporaryDirectory directory;
  const std::string path = directory / "run";
  dist::run_threads(3, [&](dist::Communicator& group) {
    manual_seed(static_cast<uint64_t>(group.rank()) + 1);
    Net net;
    int64_t rank = group.rank() + 5;
    save_checkpoint({.path = path, .group = &group}, net, named("rank", rank), generator());
    Net other;
    rank = -1;
    manual_seed(77);
    EXPECT_TRUE(
        load_checkpoint({.path = path, .group = &group}, other, named("rank", rank), generator()));
    EXPECT_EQ(rank, 5);
    EXPECT_EQ(generator().seed, 1U);
    if (group.rank() == 0) {
      EXPECT_EQ(state_hash(other.state()), state_hash(net.state()));
    } else {
      EXPECT_NE(state_hash(other.state()), state_hash(net.state()));
    }
  });
}

}  // namespace
}  // namespace binade::train::loop_checkpoint_test
