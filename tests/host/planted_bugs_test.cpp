// Every planted mistake is caught by the builds that claim it, in every schedule; the same kernels
// without a mistake pass in all builds.
#include <gtest/gtest.h>
#include <tests/host/host_launch.h>
#include <tests/host/planted_bugs.h>

#include <regex>

namespace binade::kernels::host {
namespace {

enum class Verdict {
  right,   // numbers, and no error
  wrong,   // numbers, in forward and reverse order with late copies
  error,   // a KernelError whose text matches
  death,   // AddressSanitizer or UBSan ends the program
  either,  // right or wrong, depending on the schedule
  unsafe,  // not run: undefined behaviour that this build does not catch
};

constexpr Verdict right = Verdict::right, wrong = Verdict::wrong, error = Verdict::error,
                  death = Verdict::death, either = Verdict::either, unsafe = Verdict::unsafe;

struct Case {
  PlantedKernel kernel;
  Planted bug;
  Verdict plain, asan, race;
  const char* text;  // a regular expression for the error or the sanitizer's report
};

// A source line, and two of them in the words of a race.
#define LINE "planted_[a-z]*\\.cu:[0-9]+"
#define RACE "data race .*" LINE ".*thread .*" LINE

const PlantedKernel pointwise = PlantedKernel::pointwise, norm = PlantedKernel::norm,
                    gemm = PlantedKernel::gemm, cross_entropy = PlantedKernel::cross_entropy,
                    ticket = PlantedKernel::ticket, warps = PlantedKernel::warps,
                    bytes = PlantedKernel::bytes, rules = PlantedKernel::rules;

const Case kCases[] = {
    // Memory
    {pointwise, Planted::vector_past_end, unsafe, death, unsafe, "heap-buffer-overflow"},
    {pointwise, Planted::misaligned_vector, unsafe, death, error,
     "misaligned address|needs a multiple of 16"},
    {pointwise, Planted::atomic_past_end, unsafe, error, unsafe, "atomic at .*" LINE},
    {gemm, Planted::epilogue_past_row, unsafe, death, unsafe, "heap-buffer-overflow"},
    {gemm, Planted::copy_source_past_end, unsafe, error, unsafe, "cp.async source at .*" LINE},
    {norm, Planted::shared_past_struct, unsafe, death, error, "use-after-poison|out of bounds"},
#ifndef __clang__  // -fsanitize=bounds-strict is g++'s
    {norm, Planted::shared_past_member, unsafe, death, error, "out of bounds"},
#endif
    // Order within a block
    {norm, Planted::no_barrier_before_read, wrong, wrong, error, RACE ".*no __sync"},
    {norm, Planted::no_barrier_before_reuse, wrong, wrong, error, RACE},
    {norm, Planted::uninitialised_shared, wrong, wrong, error, "uninitialised shared.*" LINE},
    {gemm, Planted::no_barrier_before_stage, either, either, error, RACE},
    {gemm, Planted::no_barrier_after_wait, wrong, wrong, error, RACE},
    {gemm, Planted::last_stage_not_waited, either, either, error, RACE ".*not waited for"},
    {gemm, Planted::not_transposed, wrong, wrong, wrong, ""},
    {cross_entropy, Planted::overwritten_before_read, wrong, wrong, error, RACE},
    {warps, Planted::shuffle_orders_nothing, right, right, error, RACE},
    {warps, Planted::no_named_barrier, wrong, wrong, error, RACE ".*no __sync"},
    {bytes, Planted::byte_race, right, right, error, RACE},
    // Order between blocks
    {cross_entropy, Planted::total_without_atomic, right, right, error,
     RACE ".*an atomic operation"},
    {ticket, Planted::ticket_without_release, right, right, error, RACE ".*__threadfence"},
    {ticket, Planted::ticket_without_acquire, right, right, error, RACE ".*__threadfence"},
    // Warps and barriers
    {warps, Planted::full_mask_in_half_warp, error, error, error, "mismatch.*" LINE ".*" LINE},
    {warps, Planted::two_call_sites, error, error, error, "mismatch.*" LINE ".*" LINE},
    {warps, Planted::lane_outside_mask, error, error, error, LINE ": lane .* does not take part"},
    {warps, Planted::lane_not_in_mask, error, error, error,
     LINE ".*not in its own mask 0x0000ffff"},
    {warps, Planted::exited_lane_in_mask, error, error, error, "ended.*" LINE "|" LINE ".*ended"},
    {rules, Planted::mask_beyond_block, error, error, error,
     LINE ".*0x000001ff names lanes beyond"},
    {rules, Planted::barrier_in_branch, error, error, error,
     "ended while others wait at __syncthreads at .*" LINE "|" LINE
     ".* threads of the block ended"},
    {rules, Planted::two_barriers, error, error, error, "divergent barrier.*" LINE ".*" LINE},
    {rules, Planted::two_calls_of_a_barrier, error, error, error,
     "divergent barrier.*" LINE ".*" LINE ", reached by another call"},
    {rules, Planted::two_calls_of_a_vote, error, error, error,
     "warp collective mismatch.*" LINE ".*, reached by another call"},
    {rules, Planted::barrier_after_exit, error, error, error,
     "ended while others wait at __syncthreads at .*" LINE "|" LINE
     ".* threads of the block ended"},
    {rules, Planted::exit_before_barrier, error, error, error,
     "ended while others wait at __syncthreads at .*" LINE "|" LINE
     ".* threads of the block ended"},
    {warps, Planted::barrier_count_not_warps, error, error, error, LINE ".*multiple of 32"},
    {rules, Planted::barrier_counts_differ, error, error, error, "barrier 2 for .*" LINE ".*" LINE},
    {rules, Planted::deadlock, error, error, error, "deadlock[^]*" LINE "[^]*named_barrier"},
    // Arguments
    {gemm, Planted::misaligned_load_matrix, error, error, error,
     "ldmatrix.* at .*" LINE ".*multiple"},
    {rules, Planted::load_matrix_of_global, error, error, error, "ldmatrix.*" LINE ".*outside"},
    {gemm, Planted::misaligned_copy, error, error, error, "cp.async at .*" LINE ".*multiple of 16"},
    {rules, Planted::copy_to_global, error, error, error, "cp.async at .*" LINE ".*outside"},
    {norm, Planted::small_shared_memory, error, error, error, "32 bytes, but the launch gave 28"},
    {rules, Planted::nested_launch, error, error, error, "launched by a kernel"},
    {rules, Planted::exception, error, error, error, "exception in the kernel: thrown in a kernel"},
    // None
    {pointwise, Planted::none, right, right, right, ""},
    {norm, Planted::none, right, right, right, ""},
    {gemm, Planted::none, right, right, right, ""},
    {cross_entropy, Planted::none, right, right, right, ""},
    {ticket, Planted::none, right, right, right, ""},
    {warps, Planted::none, right, right, right, ""},
    {bytes, Planted::none, right, right, right, ""},
    {rules, Planted::none, right, right, right, ""},
};

std::vector<Options> modes() {
  std::vector<Options> modes;
  for (const bool late : {true, false}) {
    for (const Schedule schedule : {Schedule::forward, Schedule::reverse}) {
      modes.push_back({.schedule = schedule, .late_async = late});
    }
    for (const uint64_t seed : {1, 2, 3}) {
      modes.push_back({.schedule = Schedule::random, .seed = seed, .late_async = late});
    }
  }
  return modes;
}

bool run_planted(const Case& c) {
  for (const auto entries : {planted_math(), planted_sync()}) {
    for (const PlantedEntry& entry : entries) {
      if (entry.kernel == c.kernel && entry.bug == c.bug) {
        return entry.run();
      }
    }
  }
  throw Error("no such kernel");
}

class PlantedBugs : public testing::TestWithParam<Case> {};

TEST_P(PlantedBugs, Caught) {
  const Case& c = GetParam();
  const Verdict expected = has_race_detector()       ? c.race
                           : has_address_sanitizer() ? c.asan
                                                     : c.plain;
  if (expected == Verdict::unsafe) {
    return;
  }
  for (const Options& mode : modes()) {
    SCOPED_TRACE(text("schedule ", static_cast<int>(mode.schedule), " seed ", mode.seed,
                      mode.late_async ? " late" : " early"));
    const WithOptions with(mode);
    if (expected == Verdict::death) {
      if (mode.late_async && mode.seed == 1) {  // a new process each: a second
        EXPECT_DEATH(run_planted(c), c.text);
      }
      continue;
    }
    std::string said;
    bool numbers = false;
    try {
      numbers = run_planted(c);
    } catch (const KernelError& e) {
      said = e.what();
    }
    if (expected == Verdict::error) {
      EXPECT_NE(said, "");
      EXPECT_TRUE(std::regex_search(said, std::regex(c.text))) << said;
      EXPECT_EQ(said.rfind("kernel ", 0), 0u) << said;
    } else {
      EXPECT_EQ(said, "");
    }
    if (expected == Verdict::right) {
      EXPECT_TRUE(numbers);
    }
    if (expected == Verdict::wrong && mode.schedule != Schedule::random && mode.late_async) {
      EXPECT_FALSE(numbers);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, PlantedBugs, testing::ValuesIn(kCases));

}  // namespace
}  // namespace binade::kernels::host
