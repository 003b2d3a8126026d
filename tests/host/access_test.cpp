// The counts of the access report against counts made by hand.
#include <binade/kernels/host/access_report.h>
#include <gtest/gtest.h>
#include <tests/host/host_launch.h>
#include <tests/host/patterns.h>

#include <vector>

namespace binade::kernels::host {
namespace {

constexpr int kFloats = 1024;

struct PatternCase {
  AccessPattern pattern;
  AccessKind kind;
  uint64_t requests, lanes;
  uint64_t sectors, ideal_sectors, bytes;  // of global memory
  uint64_t passes = 0, ideal_passes = 0;   // of shared memory
  uint64_t conflicts = 0;                  // of atomics
};

constexpr AccessKind kRead = AccessKind::global_read, kStore = AccessKind::shared_write;

const PatternCase kPatterns[] = {
    {AccessPattern::coalesced, kRead, 1, 32, 4, 4, 128},
    {AccessPattern::stride_two, kRead, 1, 32, 8, 4, 128},
    {AccessPattern::stride_row, kRead, 1, 32, 32, 4, 128},
    {AccessPattern::broadcast, kRead, 1, 32, 1, 1, 4},
    {AccessPattern::shifted, kRead, 1, 32, 5, 4, 128},
    {AccessPattern::vectors, kRead, 1, 32, 16, 16, 512},
    {AccessPattern::reversed, kRead, 1, 32, 4, 4, 128},
    {AccessPattern::halves, kRead, 1, 32, 2, 2, 64},
    {AccessPattern::bytes, kRead, 1, 32, 1, 1, 32},
    {AccessPattern::half_of_the_lanes, kRead, 1, 16, 2, 2, 64},
    {AccessPattern::doubles_of_rows, kRead, 1, 32, 32, 8, 256},
    {AccessPattern::two_warps, kRead, 2, 64, 8, 8, 256},
    {AccessPattern::shared_column, kStore, 1, 32, 0, 0, 128, 32, 1},
    {AccessPattern::shared_padded_column, kStore, 1, 32, 0, 0, 128, 1, 1},
    {AccessPattern::shared_stride_two, kStore, 1, 32, 0, 0, 128, 2, 1},
    {AccessPattern::shared_broadcast, AccessKind::shared_read, 1, 32, 0, 0, 128, 1, 1},
    {AccessPattern::shared_vectors, kStore, 1, 32, 0, 0, 512, 4, 4},
    {AccessPattern::shared_doubles, kStore, 1, 32, 0, 0, 256, 2, 2},
    {AccessPattern::atomics_on_one, AccessKind::global_atomic, 1, 32, 1, 1, 4, 0, 0, 32},
    {AccessPattern::atomics_on_each, AccessKind::global_atomic, 1, 32, 4, 4, 128, 0, 0, 1},
    {AccessPattern::atomics_on_four, AccessKind::global_atomic, 1, 32, 1, 1, 16, 0, 0, 8},
    {AccessPattern::shared_atomics_on_two, AccessKind::shared_atomic, 1, 32, 0, 0, 128, 1, 1, 16},
};

class CountedAccesses : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_race_detector()) {
      GTEST_SKIP() << "accesses are counted by the race build";
    }
    reset_access_report();
  }
  const WithOptions with_{{.count_accesses = true}};
  alignas(256) float memory_[kFloats] = {};
  alignas(256) float out_[64] = {};
};

TEST_F(CountedAccesses, EqualThoseMadeByHand) {
  for (const PatternCase& c : kPatterns) {
    SCOPED_TRACE(static_cast<int>(c.pattern));
    reset_access_report();
    run_access_pattern(c.pattern, memory_, out_);
    AccessRow sum;
    for (const AccessRow& row : access_report()) {
      EXPECT_EQ(row.kernel, "access_pattern_kernel");
      EXPECT_TRUE(row.file.ends_with("patterns.cu")) << row.file << ":" << row.line;
      if (row.kind == c.kind) {
        EXPECT_EQ(sum.requests, 0u) << "two lines with accesses of this kind";
        sum = row;
      }
    }
    EXPECT_EQ(sum.requests, c.requests);
    EXPECT_EQ(sum.lanes, c.lanes);
    EXPECT_EQ(sum.possible_lanes, 32 * c.requests);
    EXPECT_EQ(sum.sectors, c.sectors);
    EXPECT_EQ(sum.ideal_sectors, c.ideal_sectors);
    EXPECT_EQ(sum.bytes_used, c.bytes);
    EXPECT_EQ(sum.wavefronts, c.passes);
    EXPECT_EQ(sum.ideal_wavefronts, c.ideal_passes);
    EXPECT_EQ(sum.conflicts, c.conflicts);
  }
}

TEST_F(CountedAccesses, LeaveOutArgumentsConstantsAndLocals) {
  run_with_arguments(memory_, out_, 2);
  const std::vector<AccessRow> rows = access_report();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].kind, AccessKind::global_read);
  EXPECT_EQ(rows[1].kind, AccessKind::global_write);
  for (const AccessRow& row : rows) {
    EXPECT_EQ(row.requests, 2u);
    EXPECT_EQ(row.sectors, 8u);
    EXPECT_EQ(row.active_share(), 1);
  }
}

TEST_F(CountedAccesses, KnowWhichBytesWereTouched) {
  run_with_arguments(memory_, out_, 2);
  const TouchedBytes x = touched_bytes(memory_, sizeof memory_);
  EXPECT_EQ(x.read_first, 256u);
  EXPECT_EQ(x.written, 0u);
  const TouchedBytes y = touched_bytes(out_, sizeof out_);
  EXPECT_EQ(y.read, 0u);
  EXPECT_EQ(y.compulsory(), 256u);
  EXPECT_EQ(touched_bytes(memory_ + 3, 8).read_first, 8u);
  EXPECT_EQ(touched_bytes(memory_ + 62, 100).read_first, 8u);
  // Bytes that a kernel wrote before another one reads them could come from a cache.
  run_with_arguments(out_, memory_, 1);
  EXPECT_EQ(touched_bytes(out_, sizeof out_).read, 128u);
  EXPECT_EQ(touched_bytes(out_, sizeof out_).compulsory(), 256u);
}

TEST_F(CountedAccesses, OfSampledBlocks) {
  const WithChecks with({.sampled_blocks = 3});
  alignas(256) static float x[320], y[320];
  std::fill(std::begin(y), std::end(y), -1.0f);
  run_with_arguments(x, y, 10);
  for (int block = 0; block < 10; ++block) {
    EXPECT_EQ(y[32 * block] != -1, block == 0 || block == 4 || block == 9) << block;
  }
  const std::vector<LaunchRow> launches = launch_report();
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches[0].launches, 1u);
  EXPECT_EQ(launches[0].blocks, 10u);
  EXPECT_EQ(launches[0].blocks_run, 3u);
  EXPECT_EQ(access_report()[0].requests, 3u);
}

TEST_F(CountedAccesses, ShowDivergence) {
  const int line = run_divergent(out_);
  bool seen = false;
  for (const ExecutionRow& row : execution_report()) {
    if (row.line == line) {
      seen = true;
      EXPECT_LT(row.lanes, row.possible_lanes);  // the end of the kernel counts for this line, too
      EXPECT_EQ(row.possible_lanes, 32 * row.warps);
    }
  }
  EXPECT_TRUE(seen);
  ASSERT_EQ(access_report().size(), 1u);
  EXPECT_EQ(access_report()[0].active_share(), 0.25);
}

TEST_F(CountedAccesses, HaveBarriersAndWarpFunctionsBesideThem) {
  int y[32] = {};
  const int line = run_together(y);
  const std::vector<TogetherRow> rows = together_report();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].what, "__syncthreads");
  EXPECT_EQ(rows[0].line, line);
  EXPECT_EQ(rows[0].warps, 4u);  // 48 threads are two warps
  EXPECT_EQ(rows[0].lanes, 96u);
  EXPECT_EQ(rows[1].what, "__shfl_xor_sync");
  EXPECT_EQ(rows[1].line, line + 4);
  EXPECT_EQ(rows[1].warps, 6u);
  EXPECT_EQ(rows[1].lanes, 96u);
  EXPECT_EQ(rows[1].kernel, "together_kernel");
  reset_access_report();
  EXPECT_TRUE(together_report().empty());
}

TEST_F(CountedAccesses, BecomeFindings) {
  const auto kinds = [&](AccessPattern pattern) {
    reset_access_report();
    run_access_pattern(pattern, memory_, out_);
    std::vector<FindingKind> found;
    for (const Finding& finding : performance_findings()) {
      EXPECT_EQ(finding.severity, Severity::performance);
      found.push_back(finding.kind);
    }
    return found;
  };
  using Kinds = std::vector<FindingKind>;
  EXPECT_EQ(kinds(AccessPattern::coalesced), Kinds{});
  EXPECT_EQ(kinds(AccessPattern::shifted), Kinds{});
  EXPECT_EQ(kinds(AccessPattern::stride_row), Kinds{FindingKind::uncoalesced});
  EXPECT_EQ(kinds(AccessPattern::shared_column), Kinds{FindingKind::bank_conflict});
  EXPECT_EQ(kinds(AccessPattern::shared_padded_column), Kinds{});
  EXPECT_EQ(kinds(AccessPattern::atomics_on_one), Kinds{FindingKind::atomic_contention});
  EXPECT_EQ(kinds(AccessPattern::atomics_on_each), Kinds{});
}

}  // namespace
}  // namespace binade::kernels::host
