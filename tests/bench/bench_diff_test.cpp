// Tests which differences binade bench diff calls a change, and the files that it reads.
#include <bench/bench_diff.h>
#include <bench/bench_run.h>
#include <gtest/gtest.h>
#include <tests/support/error_of.h>

#include <filesystem>
#include <random>

namespace binade::bench::bench_diff_test {
namespace {

// The medians of rounds of seven samples: noise of 1% between the rounds and 2% within them, and an
// outlier of 30% in one sample of ten.
std::vector<double> noisy_times(std::mt19937& generator, int count, double seconds) {
  std::normal_distribution<double> noise(0, 0.01);
  std::uniform_real_distribution<double> draw(0, 1);
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const double round = seconds * (1 + noise(generator));
    std::vector<double> samples(7);
    for (double& sample : samples) {
      sample = round * (1 + 2 * noise(generator)) * (draw(generator) < 0.1 ? 1.3 : 1);
    }
    times.push_back(median(samples));
  }
  return times;
}

std::vector<CaseDiff> simulated_diffs(std::mt19937& generator, double factor, int cases) {
  std::vector<CaseDiff> diffs;
  for (int i = 0; i < cases; ++i) {
    diffs.push_back(diff_of_pairs(text("case ", i), noisy_times(generator, 12, 1e-3),
                                  noisy_times(generator, 12, i == 0 ? factor * 1e-3 : 1e-3)));
  }
  decide(diffs, {});
  return diffs;
}

TEST(BenchDiff, TellsAChangeFromNoise) {
  std::mt19937 generator(11);
  int false_changes = 0, found = 0;
  for (int run = 0; run < 100; ++run) {
    for (const CaseDiff& diff : simulated_diffs(generator, 1, 4)) {
      false_changes += diff.changed;
    }
    const std::vector<CaseDiff> slower = simulated_diffs(generator, 1.05, 4);
    found += slower[0].changed;
    EXPECT_NEAR(slower[0].change, 0.05, 0.04);
    EXPECT_TRUE(!slower[0].changed || line_of(slower[0]).find("SLOWER") != std::string::npos);
  }
  EXPECT_LE(false_changes, 1);
  EXPECT_GE(found, 85);
}

TEST(BenchDiff, SmallAndUnsureChangesAreNone) {
  const std::vector<double> before(12, 1.0), little(12, 1.01), much(12, 1.05);
  std::vector<CaseDiff> diffs{diff_of_pairs("little", before, little),
                              diff_of_pairs("much", before, much),
                              diff_of_pairs("few", {1, 1, 1}, {2, 2, 2})};
  decide(diffs, {});
  EXPECT_FALSE(diffs[0].changed);  // sure, but 1%
  EXPECT_TRUE(diffs[1].changed);
  EXPECT_FALSE(diffs[2].changed);  // three pairs are never sure
  EXPECT_NE(error_of([] { diff_of_pairs("x", {1}, {}); }).find("expected pairs"),
            std::string::npos);
}

BenchRecord small_record() {
  BenchRecord record;
  record.machine.cpu = "a CPU";
  record.machine.cores = 4;
  record.machine.threads = 3;
  record.cache = "warm: of a test";
  record.cases.push_back({.settings = {.kernel = "add", .rows = 3, .cols = 5},
                          .bytes = 180,
                          .samples = {1e-6, 2e-6, 3e-6}});
  record.cases.push_back({.settings = {.kernel = "gemm", .rows = 3, .cols = 5},
                          .error = "wrong <&\" before the timing"});
  return record;
}

TEST(BenchRecord, IsReadAsItWasWritten) {
  const std::string json = json_of(small_record());
  const BenchRecord record = parse_bench_record("file", json);
  EXPECT_EQ(record.cache, "warm: of a test");
  EXPECT_EQ(record.machine.cpu, "a CPU");
  EXPECT_EQ(record.machine.threads, 3);
  EXPECT_EQ(differing_facts(record, small_record()), "");
  const std::vector<CaseRecord>& read = record.cases;
  ASSERT_EQ(read.size(), 1u);  // the other has no samples
  EXPECT_EQ(case_name(read[0].settings), "add 3x5 f32 on cpu");
  EXPECT_EQ(read[0].samples, (std::vector<double>{1e-6, 2e-6, 3e-6}));
  const std::string svg = roofline_svg(small_record());
  EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
  EXPECT_EQ(svg.find("href"), std::string::npos);
}

TEST(BenchRecord, AnythingElseIsOneError) {
  const std::string good = json_of(small_record());
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string bad = good;
    const size_t at = bad.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return bad.replace(at, from.size(), to);
  };
  const std::pair<std::string, const char*> bad[] = {
      {"", "got no JSON"},
      {"[]", "got no \"binade_bench\""},
      {std::string(100000, '['), "got no JSON"},
      {changed("\"binade_bench\": 1", "\"binade_bench\": 2"), "another version"},
      {changed("\"binade_bench\": 1", "\"binade_bench\": \"1\""), "another version"},
      {changed("\"rows\": 3", "\"rows\": -3"), "\"rows\" is no size"},
      {changed("\"rows\": 3", "\"rows\": 1e99"), "\"rows\" is no size"},
      {changed("\"dtype\": \"f32\"", "\"dtype\": \"f99\""), "expected f64, f32"},
      {changed("\"samples_seconds\": [", "\"samples_seconds\": [-1, "), "no positive number"},
      {changed("\"samples_seconds\": [", "\"samples_seconds\": [\"x\", "), "no positive number"},
      {changed("\"samples_seconds\"", "\"samples\""), "got no \"samples_seconds\""},
      {changed("\"kernel\": \"add\"", "\"kernel\": 1"), "\"kernel\" is no text"},
      {changed("\"cpu\": \"a CPU\"", "\"cpu\": 1"), "\"cpu\" is no text"},
      {changed("\"threads\": 3", "\"threads\": 3000000000"), "\"threads\" is no size"},
      {changed("\"machine\": {", "\"machine\": [], \"unknown\": {"), "\"machine\" is no object"},
      {changed("\"cache\": \"", "\"cache\": 1, \"unknown\": \""), "\"cache\" is no text"},
      {"{\"binade_bench\": 1, \"cases\": 1}", "\"cases\" is no list"},
      {"{\"binade_bench\": 1, \"cases\": [1]}", "has what is no object"},
  };
  for (const auto& [json, message] : bad) {
    const std::string error =
        error_of([&, &text_of_file = json] { parse_bench_record("file", text_of_file); });
    EXPECT_TRUE(error.starts_with("file: ") && error.find(message) != std::string::npos)
        << error << " for " << json.substr(0, 200);
  }
}

BenchRecord record_of_samples(std::vector<double> samples) {
  BenchRecord record = small_record();
  record.cases[0].samples = std::move(samples);
  record.cases.pop_back();
  return record;
}

TEST(BenchRecord, WhatCannotBeComparedIsAnError) {
  const BenchRecord fast = record_of_samples({1, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06});
  const BenchRecord slow = record_of_samples({2, 2.01, 2.02, 2.03, 2.04, 2.05, 2.06});
  const std::vector<CaseDiff> diffs = diff_of_records(fast, slow, {});
  ASSERT_EQ(diffs.size(), 1u);
  EXPECT_TRUE(diffs[0].changed);
  EXPECT_FALSE(diff_of_records(fast, fast, {})[0].changed);
  const auto refused = [&](const BenchRecord& other, const char* message) {
    const std::string error = error_of([&] { diff_of_records(fast, other, {}); });
    EXPECT_NE(error.find(message), std::string::npos) << error;
  };
  refused(record_of_samples({2}), "add 3x5 f32 on cpu: got 7 and 1 samples, which cannot tell");
  BenchRecord cold = slow;
  cold.cache = "cold: of a test";
  refused(cold, "got a file of warm and one of cold caches");
  BenchRecord other = slow;
  other.cases[0].settings.rows = 7;
  refused(other, "no case in common");
}

TEST(BenchRecord, TheFactsThatDiffer) {
  BenchRecord other = small_record();
  other.machine.commit = "another";  // which is what is compared
  other.machine.cores = 0;           // not known
  EXPECT_EQ(differing_facts(small_record(), other), "");
  other.machine.cpu = "another CPU";
  other.machine.threads = 64;
  EXPECT_EQ(differing_facts(small_record(), other), "cpu: a CPU, another CPU; threads: 3, 64");
}

TEST(BenchDiff, TooFewRoundsAreAnError) {
  BuildDiff builds{.before = "/bin/true", .after = "/bin/true"};
  builds.cases.resize(4);
  builds.rounds = 9;
  EXPECT_NE(error_of([&] { diff_of_builds(builds, {}); })
                .find("got 9 rounds, which cannot tell a "
                      "change from noise among 4 cases; expected at least 10"),
            std::string::npos);
}

TEST(BenchRun, WordsOfCases) {
  EXPECT_EQ(case_name(parse_case_word("add")), "add 4096x1024 f32 on cpu");
  EXPECT_EQ(case_name(parse_case_word("add:3x5")), "add 3x5 f32 on cpu");
  for (const char* word :
       {"add:", "add:3", "add:x", "add:0x3", "add:3x-1", "add:3x5x7", "add:99999999999x1"}) {
    EXPECT_NE(error_of([&] { parse_case_word(word); }).find("expected KERNEL or KERNEL:ROWSxCOLS"),
              std::string::npos)
        << word;
  }
  EXPECT_NE(error_of([] { parse_case_word("no_such_kernel:3x5"); }).find("no_such_kernel"),
            std::string::npos);
}

// A wrong kernel is found before anything is timed.
TEST(CaseChecks, AWrongResultIsFound) {
  const CaseSettings settings{.kernel = "softmax_forward", .rows = 7, .cols = 33};
  Prepared work = prepare(settings);
  EXPECT_TRUE(check_case(work, settings).ok);
  work.run = [run = work.run, &work] {
    run();
    work.operands->arrays().back()->as<float>()[40] += 0.01F;
  };
  const CaseCheck checked = check_case(work, settings);
  EXPECT_FALSE(checked.ok);
  EXPECT_NE(checked.wrong.find("element 40 of array 1 (f32 [7, 33])"), std::string::npos)
      << checked.wrong;
}

TEST(BenchProgram, IsFoundInABuild) {
  EXPECT_NE(error_of([] { bench_program("/no/such/folder"); }).find("expected a build folder"),
            std::string::npos);
  EXPECT_EQ(bench_program("/bin/sh"), "/bin/sh");
}

}  // namespace
}  // namespace binade::bench::bench_diff_test
