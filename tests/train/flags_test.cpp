// Tests the flags of programs: what they set, and one error for each mistake.
#include <binade/core/tensor/create.h>
#include <binade/kernels/base/parallel.h>
#include <binade/train/flags.h>

#include <gtest/gtest.h>

#include <optional>

namespace binade::train::flags_test {
namespace {

struct Result {
  int status;
  std::optional<RunFlags> flags;  // empty: the body did not run
  std::string output, errors;
};

struct OwnFlags {
  double temperature = 0.8;
  int64_t layers = 4;
  std::string text = "a";
  bool sample = false;
  std::vector<std::string> files = {};
};

Result run(
    std::vector<std::string> arguments, OwnFlags* own = nullptr,
    const std::function<int()>& body = [] { return 0; }) {
  OwnFlags unused;
  OwnFlags& o = own ? *own : unused;
  Program program("demo", "Tries flags.", {.epochs = 3, .lr = 0.25}, {"--data"});
  program.add("--temperature", o.temperature, "of the text", {0, 10});
  program.add("--layers", o.layers, "of the model", {1, 100});
  program.add("--text", o.text, "to begin with");
  program.add("--sample", o.sample, "only sample");
  program.add("FILE", o.files, "to read");
  arguments.insert(arguments.begin(), "demo");
  std::vector<char*> argv;
  for (std::string& argument : arguments) {
    argv.push_back(argument.data());
  }
  Result result{};
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  result.status =
      program.run(static_cast<int>(argv.size()), argv.data(), [&](const RunFlags& flags) {
        result.flags = flags;
        return body();
      });
  result.output = ::testing::internal::GetCapturedStdout();
  result.errors = ::testing::internal::GetCapturedStderr();
  return result;
}

TEST(Flags, DefaultsAreTheProgramsOwn) {
  const Result r = run({});
  EXPECT_EQ(r.status, 0);
  ASSERT_TRUE(r.flags);
  EXPECT_EQ(r.flags->epochs, 3);
  EXPECT_EQ(r.flags->lr, 0.25);
  EXPECT_EQ(r.flags->policy(), Precision::full());
  EXPECT_FALSE(r.flags->loss_scaler());
  EXPECT_EQ(r.flags->target(), Device::best());
  EXPECT_EQ(r.flags->run, "runs/demo-1");
  EXPECT_EQ(r.flags->settings, (std::map<std::string, std::string>{{"batch", "64"},
                                                                   {"epochs", "3"},
                                                                   {"layers", "4"},
                                                                   {"lr", "0.25"},
                                                                   {"precision", "fp32"},
                                                                   {"seed", "0"},
                                                                   {"steps", "0"},
                                                                   {"temperature", "0.8"}}));
}

TEST(Flags, AllAreParsed) {
  OwnFlags own;
  const Result r = run({"--epochs",
                        "5",
                        "--steps=70",
                        "--batch",
                        "8",
                        "--lr",
                        "1e-4",
                        "--precision",
                        "fp16",
                        "--seed",
                        "123",
                        "--device",
                        "cpu",
                        "--threads",
                        "1",
                        "--run",
                        "x",
                        "--resume",
                        "--checkpoint-every",
                        "10",
                        "--temperature",
                        "0.5",
                        "--layers",
                        "2",
                        "--text",
                        "b c",
                        "--sample",
                        "one",
                        "two"},
                       &own, [] {
                         EXPECT_EQ(generator().seed, 123U);
                         EXPECT_EQ(kernels::threads(), 1);
                         return 7;
                       });
  EXPECT_EQ(r.status, 7);
  kernels::set_threads(0);
  ASSERT_TRUE(r.flags);
  EXPECT_EQ(r.flags->policy(), Precision::mixed(DType::f16));
  EXPECT_TRUE(r.flags->loss_scaler());
  const TrainerOptions options = r.flags->trainer_options();
  EXPECT_EQ(options.epochs, 5);
  EXPECT_EQ(options.run, "x");
  EXPECT_TRUE(options.resume && !options.overwrite && options.stop_on_signal);
  EXPECT_EQ(options.checkpoint_every, 10);
  EXPECT_EQ(options.settings.at("temperature"), "0.5");
  EXPECT_EQ(options.settings.at("lr"), "1e-04");
  EXPECT_EQ(r.flags->checkpoint_options().path, "x");
  EXPECT_EQ(own.temperature, 0.5);
  EXPECT_EQ(own.layers, 2);
  EXPECT_EQ(own.text, "b c");
  EXPECT_TRUE(own.sample);
  EXPECT_EQ(own.files, (std::vector<std::string>{"one", "two"}));
}

TEST(Flags, MistakesAreOneLineAndStatus2) {
  const std::pair<std::vector<std::string>, const char*> mistakes[] = {
      {{"--epochs", "-1"}, "--epochs: got -1, expected a number from 0 to"},
      {{"--epochs", "2.5"}, "--epochs"},
      {{"--lr", "nan"}, "--lr: got nan"},
      {{"--lr", "-1"}, "--lr: got -1"},
      {{"--batch", "many"}, "--batch: got many"},
      {{"--precision", "fp8"}, "--precision: "},
      {{"--device", "tpu"}, "--device: "},
      {{"--seed", "-4"}, "--seed: got -4"},
      {{"--data", "x"}, "--data"},
      {{"--unknown"}, "--unknown"},
      {{"--resume"}, "--resume: has no effect without --run DIR"},
      {{"--run", ""}, "--run: got an empty path"},
      {{"--run", "a", "--resume", "--overwrite"}, "got both --resume and --overwrite"},
      {{"--temperature", "11"}, "--temperature: got 11, expected a number from 0 to 10"},
      {{"--layers", "0"}, "--layers: got 0"}};
  for (const auto& [arguments, part] : mistakes) {
    const Result r = run(arguments);
    EXPECT_EQ(r.status, 2) << part;
    EXPECT_FALSE(r.flags) << part;
    EXPECT_EQ(r.errors.find("binade: error: "), 0U) << r.errors;
    EXPECT_NE(r.errors.find(part), std::string::npos) << r.errors;
    EXPECT_EQ(r.errors.find('\n'), r.errors.size() - 1) << r.errors;
  }
}

TEST(Flags, HelpListsThemWithDefaults) {
  const Result r = run({"--help"});
  EXPECT_EQ(r.status, 0);
  EXPECT_FALSE(r.flags);
  for (const char* part : {"Tries flags.", "--epochs", "=3\n", "--temperature", "=0.8\n",
                           "--checkpoint-every", "Exit status"}) {
    EXPECT_NE(r.output.find(part), std::string::npos) << part << " in " << r.output;
  }
  EXPECT_EQ(r.output.find("--data"), std::string::npos);
}

TEST(Flags, ErrorsOfTheBodyHaveTheirStatus) {
  const Result error = run({}, nullptr, []() -> int { fail("something broke"); });
  EXPECT_EQ(error.status, 1);
  EXPECT_EQ(error.errors, "binade: error: something broke\n");
  EXPECT_EQ(run({}, nullptr, []() -> int { throw Diverged("NaN"); }).status, 3);
  EXPECT_THROW(Program("a", "b", {}, {"--none"}), Error);
}

}  // namespace
}  // namespace binade::train::flags_test
