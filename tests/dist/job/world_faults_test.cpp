// A rank dies, hangs, leaves or throws at a random place and step: every other process must end in
// time with a table that names it, and no process may be left. BINADE_FAULT_POINTS sets the number
// of points; the slow ctest dist_world_faults_56 tries all 56 pairs of fault and place.
#include <binade/dist/transport/mpi_transport.h>
#include <gtest/gtest.h>
#include <tests/dist/job/run_program.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <regex>

namespace binade::dist::world_faults_test {
namespace {

const std::string kRanks = BINADE_BIN_DIR "/dist_ranks ";
constexpr double kCollectiveTimeout = 1.5;  // as in dist_ranks

int points(int otherwise) {
  const char* wanted = std::getenv("BINADE_FAULT_POINTS");
  return wanted ? std::atoi(wanted) : otherwise;
}

struct Fault {
  std::string how;
  int victim, step;
};

// Every process of a fault has this tag in its command line.
std::string tag() { return "faults-of-" + std::to_string(getpid()); }

// The largest step in the tables of an output, or -1. The victim's row may be older than its end,
// and if rank 0 is gone a rank knows only its own row.
int last_step(const std::string& output) {
  const std::regex row("\n[0-9]+ [^\n]* s +([0-9]+)");
  int step = -1;
  for (std::sregex_iterator match(output.begin(), output.end(), row), end; match != end; ++match) {
    step = std::max(step, std::stoi((*match)[1]));
  }
  return step;
}

// The time of the fault on the monotonic clock, from the victim's last words. This leaves out the
// time that processes take to start.
double time_of_fault(const std::string& output) {
  std::smatch match;
  const bool found = std::regex_search(output, match, std::regex("the fault is at ([0-9.]+) s\n"));
  EXPECT_TRUE(found);
  return found ? std::stod(match[1]) : 0;
}

bool is_collective(const std::string& how) {
  const std::string place = how.find('@') == how.npos ? "" : how.substr(how.find('@'));
  return place != "@init" && place != "@joined" && place != "@shutdown";
}

// Runs it again, up to `tries` times, while no rank tells of the fault.
void expect_end(const std::string& start, const Fault& fault, double seconds, int tries = 1) {
  const std::string command = start + kRanks + fault.how + " " + std::to_string(fault.victim) +
                              " " + std::to_string(fault.step) + " " + tag();
  ProgramResult result = run_program(command);
  while (--tries > 0 && result.output.find("rank  state") == std::string::npos) {
    result = run_program(command);
  }
  SCOPED_TRACE(command + "\n" + result.output);
  EXPECT_NE(result.status, 0);
  EXPECT_LT(result.ended - time_of_fault(result.output), seconds);
  const std::string victim = "rank " + std::to_string(fault.victim);
  EXPECT_NE(result.output.find(victim), std::string::npos);
  if (fault.how.find('@') == fault.how.npos) {
    // The job may end before another rank reaches its all_reduce: such a rank is in the barrier of
    // the previous step, or has left it.
    const std::regex place("all_reduce f32 avg 1000|\n[0-9]+ +(in|after) +#[0-9]+ barrier");
    EXPECT_TRUE(std::regex_search(result.output, place));
  }
  if (is_collective(fault.how)) {
    EXPECT_NE(result.output.find("rank  state"), std::string::npos);
    // The other ranks may still be in the previous step.
    EXPECT_GE(last_step(result.output), fault.step - 1);
    EXPECT_LE(last_step(result.output), fault.step);
  }
  EXPECT_NE(run_program("pgrep -f '[f]" + tag().substr(1) + "'").status, 0) << "processes are left";
}

Fault random_fault(std::mt19937& random, const std::string& how) {
  return {how, static_cast<int>(random() % 3), static_cast<int>(1 + random() % 40)};
}

constexpr double kDeadSeconds = 5, kStuckSeconds = kCollectiveTimeout + 5;

// Covers every kind of death and hang, in a random rank at a random place and step.
TEST(WorldFaults, RandomPoints) {
  constexpr const char* kHow[] = {"kill",  "segv",  "abort",    "exit",
                                  "exit1", "throw", "uncaught", "stop"};
  constexpr const char* kPlace[] = {"",          "@broadcast", "@barrier", "@save",
                                    "@shutdown", "@joined",    "@init"};
  std::mt19937 random(7);
  const int first = static_cast<int>(random() % 56);
  for (int i = 0; i < points(12); ++i) {
    // Neighbouring points differ in both; 56 points cover all pairs.
    const int at = (first + i * 11) % 56;
    const std::string how = kHow[at % 8], place = kPlace[at / 8];
    expect_end(kRanks + "launch 3 ", random_fault(random, how + place),
               how == "stop" ? kStuckSeconds : kDeadSeconds);
  }
}

TEST(WorldFaults, ARankThatReadsForeverEndsAll) {
  std::mt19937 random(12);
  expect_end(kRanks + "launch 3 ", random_fault(random, "read"), kStuckSeconds);
}

// Rank 0 has the table and waits for the other ranks at the end.
TEST(WorldFaults, AStoppedRankZeroEndsAll) {
  expect_end(kRanks + "launch 3 ", {"stop", 0, 5}, kStuckSeconds);
}
TEST(WorldFaults, ARankThatStopsAtTheEndEndsAll) {
  expect_end(kRanks + "launch 3 ", {"stop@shutdown", 2, 3}, kStuckSeconds);
}

TEST(WorldFaults, ARankThatReturnsEarlyEndsAll) {
  std::mt19937 random(8);
  for (int i = 0; i < 2; ++i) {
    expect_end(kRanks + "launch 3 ", random_fault(random, "return"), 5);
  }
}

TEST(WorldFaults, ARankThatComputesForeverEndsAll) {
  std::mt19937 random(11);
  expect_end(kRanks + "launch 3 ", random_fault(random, "loop"), kStuckSeconds);
}

TEST(WorldFaults, AMismatchEndsAll) {
  std::mt19937 random(9);
  for (int i = 0; i < 2; ++i) {
    expect_end(kRanks + "launch 3 ", random_fault(random, "mismatch"), 5);
  }
}

TEST(WorldFaults, UnderMpirunToo) {
  if (!has_mpi() || !has_mpirun()) {
    GTEST_SKIP() << "skipped: no MPI";
  }
  std::mt19937 random(10);
  for (const char* how : {"kill", "exit", "throw", "stop", "mismatch"}) {
    // On a busy machine mpirun may end the other ranks before they notice.
    expect_end(mpirun(3), random_fault(random, how),
               how == std::string("stop") ? kStuckSeconds : kDeadSeconds, 5);
  }
}

}  // namespace
}  // namespace binade::dist::world_faults_test
