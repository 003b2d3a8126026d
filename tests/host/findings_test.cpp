// Wrong kernels on named memory: each finding has its kind, its lines, its array with the index,
// and its thread, in every schedule; the right ones have none.
#include <binade/kernels/host/fault_signal.h>
#include <binade/kernels/host/schedules.h>
#include <gtest/gtest.h>
#include <tests/host/host_launch.h>
#include <tests/host/wrong_kernels.h>

#include <algorithm>

namespace binade::kernels::host {
namespace {

constexpr uint64_t kSteps = 1 << 20;

// The findings of a case, in the order of findings().
std::vector<Finding> collected(Wrong wrong, const ScheduleOptions& schedule = {}) {
  const WithChecks with(
      {.collect_findings = true, .only_named_memory = true, .step_limit = kSteps});
  const WithSchedule order(schedule);
  WrongBuffers buffers;
  reset_findings();
  try {
    run_wrong(wrong, buffers);
  } catch (const KernelError&) {
  }
  return findings();
}

struct Expected {
  Wrong wrong;
  FindingKind kind;
  int first, second;    // lines, counted from line_before(); 0 is no line
  const char* element;  // to_string(), or the beginning of it
  Remedy remedy = Remedy::none;
};
void PrintTo(const Expected& expected, std::ostream* out) {
  *out << name_of(expected.kind) << " " << static_cast<int>(expected.wrong);
}

// The lines of a race stand either way round, as the schedule has it.
bool has_lines(const Finding& finding, const Expected& expected) {
  const int before = line_before(expected.wrong);
  const auto relative = [&](const FindingSide& side) {
    return side.line.known() ? side.line.line - before : 0;
  };
  const int a = relative(finding.first), b = relative(finding.second);
  return (a == expected.first && b == expected.second) ||
         (b == expected.first && a == expected.second);
}

class WrongKernels : public testing::TestWithParam<Expected> {};

TEST_P(WrongKernels, AreNamed) {
  if (!has_race_detector()) {
    GTEST_SKIP() << "the race build sees every access";
  }
  catch_fault_signals();
  const Expected& expected = GetParam();
  for (const ScheduleOptions& schedule : all_schedules(2)) {
    SCOPED_TRACE(to_string(schedule));
    const std::vector<Finding> found = collected(expected.wrong, schedule);
    ASSERT_FALSE(found.empty());
    const auto match = std::find_if(found.begin(), found.end(), [&](const Finding& finding) {
      return finding.kind == expected.kind && has_lines(finding, expected);
    });
    std::string all;
    for (const Finding& finding : found) {
      all += text(name_of(finding.kind), ": ", finding.message, "\n");
    }
    ASSERT_NE(match, found.end()) << all << "from line " << line_before(expected.wrong);
    EXPECT_TRUE(to_string(match->element).starts_with(expected.element))
        << to_string(match->element) << "\n"
        << all;
    EXPECT_EQ(match->remedy, expected.remedy) << all;
    EXPECT_EQ(match->severity, severity_of(expected.kind));
    EXPECT_TRUE(match->first.line.file.ends_with("wrong_kernels.cu")) << match->first.line.file;
    EXPECT_EQ(match->message.rfind("kernel ", 0), 0u) << match->message;
  }
}

const Expected kExpected[] = {
    {Wrong::neighbour_without_barrier, FindingKind::missing_barrier, 9, 4, "tile[",
     Remedy::syncthreads},
    {Wrong::neighbour_without_syncwarp, FindingKind::missing_barrier, 9, 4, "tile[",
     Remedy::syncwarp},
    {Wrong::reused_without_barrier, FindingKind::missing_barrier, 7, 6, "tile[",
     Remedy::syncthreads},
    {Wrong::histogram_without_atomic, FindingKind::race, 6, 6, "y[", Remedy::atomic},
    {Wrong::stencil_in_place, FindingKind::race, 5, 3, "y[", Remedy::another_launch},
    {Wrong::same_value, FindingKind::same_value_store, 2, 2, "y[3]"},
    {Wrong::last_value, FindingKind::race, 2, 2, "y[3]", Remedy::syncwarp},
    {Wrong::past_end, FindingKind::out_of_bounds, 3, 0, "x[6"},
    {Wrong::past_shared_end, FindingKind::out_of_bounds, 6, 0, "tile["},
    {Wrong::padding, FindingKind::out_of_bounds, 2, 0, "matrix's padding (row "},
    {Wrong::into_input, FindingKind::write_to_input, 3, 0, "x["},
    {Wrong::accumulates_into_output, FindingKind::uninitialised_read, 1, 0, "y["},
    {Wrong::never_written, FindingKind::uninitialised_read, 4, 0, "tile["},
    {Wrong::read_before_store, FindingKind::uninitialised_read, 4, 0, "tile["},
    {Wrong::polls_flag, FindingKind::step_limit, 3, 0, "y[0]"},
    {Wrong::misaligned, FindingKind::misaligned, 2, 0, "x[1]"},
    {Wrong::wild_pointer, FindingKind::out_of_bounds, 1, 0, ""},
    {Wrong::member_index, FindingKind::out_of_bounds, 4, 0, ""},
    {Wrong::overflow, FindingKind::undefined_math, 2, 0, ""},
};
INSTANTIATE_TEST_SUITE_P(All, WrongKernels, testing::ValuesIn(kExpected));

TEST(Findings, RightKernelsHaveNone) {
  for (const ScheduleOptions& schedule : all_schedules(2)) {
    for (const Wrong right : {Wrong::none, Wrong::waits_for_another_warp}) {
      for (const Finding& finding : collected(right, schedule)) {
        ADD_FAILURE() << to_string(schedule) << ": " << finding.message;
      }
    }
  }
}

TEST(Findings, AreCountedByLinePair) {
  if (!has_race_detector()) {
    GTEST_SKIP() << "the race build sees every access";
  }
  const std::vector<Finding> found = collected(Wrong::past_end);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].count, 2u);  // threads 62 and 63
  EXPECT_EQ(found[0].elements, 2u);
  EXPECT_EQ(to_string(found[0].element), "x[64] of 64");
  EXPECT_EQ(found[0].first.thread, (Coordinates{62, 0, 0}));
  EXPECT_EQ(found[0].first.block, (Coordinates{0, 0, 0}));
  EXPECT_EQ(found[0].first.act, Act::read);
  EXPECT_EQ(found[0].bytes, 4u);
  EXPECT_FALSE(found[0].ended);

  const std::vector<Finding> races = collected(Wrong::reused_without_barrier);
  ASSERT_EQ(races.size(), 1u);
  EXPECT_GE(races[0].elements, 32u);
  EXPECT_EQ(races[0].order, "read after write");
}

TEST(Findings, OfOneMistakeAreNotTwo) {
  if (!has_race_detector()) {
    GTEST_SKIP() << "the race build sees every access";
  }
  for (const Expected& expected : kExpected) {
    if (expected.wrong == Wrong::read_before_store || expected.wrong == Wrong::misaligned) {
      continue;  // the store races, too; a float4 is four elements
    }
    std::string all;
    size_t of_kind = 0;
    for (const Finding& finding : collected(expected.wrong)) {
      of_kind += finding.kind == expected.kind ? 1 : 0;
      all += finding.message + "\n";
    }
    EXPECT_EQ(of_kind, 1u) << all;
  }
}

TEST(Findings, EndlessThreadsEnd) {
  if (has_address_sanitizer()) {
    GTEST_SKIP() << "a loop without a body has no steps";
  }
  catch_fault_signals();
  end_idle_loops_after(0.2);
  const std::vector<Finding> found = collected(Wrong::endless);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::step_limit);
  const int line = found[0].first.line.line - line_before(Wrong::endless);
  EXPECT_GE(line, 1);
  EXPECT_LE(line, 5);
  EXPECT_TRUE(found[0].ended);
  end_idle_loops_after(0);
}

TEST(Findings, ThreadsThatEndedBeforeABarrier) {
  const std::vector<Finding> found = collected(Wrong::ended_before_barrier);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::barrier_divergence);
  EXPECT_TRUE(found[0].ended);
  EXPECT_EQ(found[0].first.act, Act::end);
  EXPECT_EQ(found[0].second.act, Act::barrier);
  EXPECT_EQ(found[0].second.line.line - line_before(Wrong::ended_before_barrier), 6);
  EXPECT_EQ(found[0].first.thread, (Coordinates{50, 0, 0}));
}

TEST(Findings, TheSinkGetsEachGroupOnce) {
  static int calls;
  calls = 0;
  set_finding_sink([](const Finding&) { ++calls; });
  const size_t groups = collected(Wrong::ended_before_barrier).size();
  set_finding_sink(nullptr);
  EXPECT_EQ(groups, 1u);
  EXPECT_EQ(calls, 1);
}

TEST(Findings, FaultsOfTheProcessorAreErrors) {
  if (has_address_sanitizer() || has_race_detector()) {
    GTEST_SKIP() << "these builds see the access itself";
  }
  catch_fault_signals();
  WrongBuffers buffers;
  for (int i = 0; i < 3; ++i) {  // the process goes on
    reset_findings();
    buffers.reset();
    EXPECT_THROW(run_wrong(Wrong::wild_pointer, buffers), KernelError);
    const std::vector<Finding> found = findings();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].kind, FindingKind::out_of_bounds);
    EXPECT_EQ(found[0].first.line.line - line_before(Wrong::wild_pointer), 1);
    EXPECT_EQ(to_string(found[0].element), "x[1000] of 64");
    buffers.reset();
    run_wrong(Wrong::none, buffers);
  }
}

// Without the race detector the pattern behind a buffer shows a store that did not fault.
TEST(GuardedBuffers, KeepTheirNameWhenFreed) {
  GuardedBuffer buffer({.name = "t", .bytes = 40});
  buffer.retire();
  const FoundElement element = element_at(static_cast<char*>(buffer.data()) + 8);
  EXPECT_EQ(element.array, "t (freed)");
  EXPECT_EQ(element.index, 2);
  EXPECT_EQ(element.count, 0);
}

TEST(GuardedBuffers, ShowWhatWasWrittenPastTheEnd) {
  GuardedBuffer buffer({.name = "out", .bytes = 40});
  reset_findings();
  EXPECT_EQ(buffer.check_guards(), 0);
  static_cast<char*>(buffer.data())[44] = 1;
  EXPECT_EQ(buffer.check_guards(), 1);
  ASSERT_EQ(findings().size(), 1u);
  EXPECT_EQ(to_string(findings()[0].element), "out[11] of 10");
  buffer.reset();
  EXPECT_EQ(buffer.check_guards(), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 256, 0u);
}

TEST(NamedRanges, RefuseOverlaps) {
  alignas(16) static char memory[64];
  name_range({.name = "a", .begin = memory, .bytes = 32, .element_bytes = 8});
  EXPECT_THROW(name_range({.name = "b", .begin = memory + 24, .bytes = 8}), Error);
  EXPECT_THROW(name_range({.name = "b", .begin = memory + 32, .bytes = 8, .guard = 8}), Error);
  name_range({.name = "b", .begin = memory + 32, .bytes = 8});
  EXPECT_EQ(to_string(element_at(memory + 17)), "a[2]");
  EXPECT_EQ(to_string(element_at(memory + 33)), "b[1]");
  EXPECT_EQ(element_at(memory + 40).space, MemorySpace::none);
  EXPECT_EQ(to_string(element_at(memory + 56, true)), "b[24] of 8");
  forget_range(memory);
  forget_range(memory + 32);
  EXPECT_EQ(element_at(memory).space, MemorySpace::none);
}

TEST(Schedules, TellWhichLineMakesBitsDiffer) {
  const WithChecks with({.collect_findings = true});
  WrongBuffers buffers;
  reset_findings();
  const auto compare = [&](Wrong wrong) {
    return compare_schedules(all_schedules(2), {{buffers.y.data(), buffers.y.bytes()}}, [&] {
      buffers.reset();
      run_wrong(wrong, buffers);
    });
  };
  const ScheduleReport right = compare(Wrong::none);
  EXPECT_EQ(right.runs, 5);
  EXPECT_TRUE(right.differences.empty());
  const ScheduleReport wrong = compare(Wrong::float_atomics);
  ASSERT_EQ(wrong.differences.size(), 1u);
  EXPECT_EQ(to_string(wrong.differences[0].element), "y[0]");
  EXPECT_EQ(wrong.differences[0].severity, Severity::warning);
  if (has_race_detector()) {
    EXPECT_EQ(wrong.differences[0].first.act, Act::atomic);
    EXPECT_EQ(wrong.differences[0].first.line.line - line_before(Wrong::float_atomics), 2);
    EXPECT_EQ(wrong.differences[0].kernel, "float_atomics_kernel");
  }
}

}  // namespace
}  // namespace binade::kernels::host
