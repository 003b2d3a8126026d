// Tests worlds of processes that find each other, however they were started.
#include <binade/dist/job/world.h>
#include <binade/dist/transport/mpi_transport.h>
#include <binade/dist/transport/socket_internal.h>
#include <binade/kernels/base/device.h>
#include <gtest/gtest.h>
#include <tests/dist/job/run_program.h>

namespace binade::dist::world_test {
namespace {

const std::string kRanks = BINADE_BIN_DIR "/dist_ranks ";
std::string launched(int ranks) { return kRanks + "launch " + std::to_string(ranks) + " "; }

void expect_output(const ProgramResult& result, int status, const std::string& part) {
  EXPECT_EQ(result.status, status) << result.output;
  EXPECT_NE(result.output.find(part), std::string::npos) << part << " is not in:\n"
                                                         << result.output;
}

TEST(World, OfOneProcess) {
  expect_output(run_program(kRanks + "world"), 0, "1 ranks over threads");
}

TEST(World, StartedByLaunch) {
  for (const int ranks : {1, 2, 4, 7}) {
    expect_output(run_program(launched(ranks) + kRanks + "world"), 0,
                  std::to_string(ranks) + " ranks over " + (ranks == 1 ? "threads" : "tcp"));
  }
}

TEST(World, StartedByMpirun) {
  if (!has_mpi() || !has_mpirun()) {
    GTEST_SKIP() << "skipped: no MPI";
  }
  for (const int ranks : {1, 2, 3}) {
    expect_output(run_program(mpirun(ranks) + kRanks + "world"), 0,
                  std::to_string(ranks) + " ranks over " + (ranks == 1 ? "threads" : "mpi"));
  }
}

// The ranks start independently in any order, as under torchrun.
TEST(World, StartedLikeTorchrun) {
  std::string command;
  for (const int rank : {2, 1, 0}) {
    command += "RANK=" + std::to_string(rank) + " WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=" +
               std::to_string(20000 + getpid() % 10000) + " " + kRanks + "world & sleep 0.1; ";
  }
  expect_output(run_program(command + "wait"), 0, "3 ranks over tcp");
}

// Every transport gives the same bits, because the ring fixes the order of every sum.
TEST(World, TrainsDataParallel) {
  const auto tcp = run_program(launched(3) + kRanks + "train");
  expect_output(tcp, 0, "trained to ");
  if (has_mpi() && has_mpirun()) {
    const auto mpi = run_program(mpirun(3) + kRanks + "train");
    expect_output(mpi, 0, tcp.output);
  }
}

TEST(World, LogsTheRanksThatAreAskedFor) {
  const auto result = run_program("BINADE_LOG_RANKS=all " + launched(2) + kRanks + "world");
  expect_output(result, 0, "[rank 0] 2 ranks over tcp");
  expect_output(result, 0, "[rank 1] 2 ranks over tcp");
}

TEST(WorldErrors, RanksThatDoNotComeAreNamed) {
  const std::string port = std::to_string(31000 + getpid() % 1000);
  const auto result = run_program("export WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + port +
                                  " BINADE_RENDEZVOUS_TIMEOUT=1; RANK=0 " + kRanks +
                                  "world & RANK=2 " + kRanks + "world; wait");
  expect_output(result, 0, "rendezvous: ranks 1, 3 of 4 did not come in 1 s");
  EXPECT_LT(result.seconds, 8);
}

TEST(WorldErrors, ASizeThatDiffersIsNamed) {
  const std::string port = std::to_string(32000 + getpid() % 1000);
  const auto result =
      run_program("export MASTER_ADDR=127.0.0.1 MASTER_PORT=" + port + "; WORLD_SIZE=3 RANK=0 " +
                  kRanks + "world & WORLD_SIZE=4 RANK=1 " + kRanks + "world; wait");
  expect_output(result, 0, "rendezvous: got rank 1 of 4, expected ranks of 3");
  EXPECT_LT(result.seconds, 8);
}

TEST(WorldErrors, StrangersDoNotDisturbTheRendezvous) {
  const std::string port = std::to_string(30000 + getpid() % 1000);
  const auto result = run_program(
      "export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 BINADE_RENDEZVOUS_TIMEOUT=8 MASTER_PORT=" + port +
      " BINADE_SECRET=the-secret-of-this-job; RANK=0 " + kRanks +
      "world & sleep 0.3; bash -c 'exec 3<>/dev/tcp/127.0.0.1/" + port +
      "; echo GET / HTTP/1.1 >&3'; BINADE_SECRET=the-secret-of-another RANK=1 " + kRanks +
      "world; RANK=1 " + kRanks + "world; wait");
  expect_output(result, 0, "the secret is another one");
  expect_output(result, 0, "2 ranks over tcp");
}

// The number of a closed standard stream is reused by a socket, which no output may reach.
TEST(World, RunsWithClosedStreams) {
  EXPECT_EQ(run_program(launched(2) + kRanks + "train >&- <&-").status, 0);
  EXPECT_EQ(run_program(launched(2) + kRanks + "train >&- <&- 2>&-").status, 0);
  // If its reader is gone, rank 0 is ended by SIGPIPE like any program, and the launcher says so.
  const auto cut = run_program("{ " + launched(2) + kRanks + "train; echo status $? >&2; } | true");
  expect_output(cut, 0, "ended by signal 13 (Broken pipe)");
  expect_output(cut, 0, "status 141");
}

// As SECURITY.md says, every wait uses the monotonic clock.
TEST(World, DoesNotMindAClockThatJumps) {
  const std::string jumps = "LD_PRELOAD=" BINADE_BIN_DIR "/libclock_jumps.so ";
  const auto result = run_program(jumps + "BINADE_TIMEOUT=10 " + launched(3) + kRanks + "train");
  expect_output(result, 0, "trained to ");
  const auto check = run_program("test $(" + jumps + "date +%s) -gt $(($(date +%s) + 80000))");
  EXPECT_EQ(check.status, 0) << "the clock does not jump";
}

TEST(WorldErrors, APortInUseIsNamed) {
  const Socket taken = listen_at("127.0.0.1", 0);
  const std::string port = std::to_string(taken.port());
  const auto result = run_program("WORLD_SIZE=2 RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + port +
                                  " " + kRanks + "world");
  expect_output(result, 1, "listening at 127.0.0.1 port " + port + ": Address already in use");
  EXPECT_LT(result.seconds, 8);
}

// A process that never answers has rank 0's port: a rank gives up in time.
TEST(WorldErrors, AStalePeerIsNotWaitedForLonger) {
  const Socket stale = listen_at("127.0.0.1", 0);
  const auto result =
      run_program("BINADE_TIMEOUT=1 WORLD_SIZE=2 RANK=1 MASTER_ADDR=127.0.0.1 " +
                  ("MASTER_PORT=" + std::to_string(stale.port())) + " " + kRanks + "world");
  expect_output(result, 1, "rendezvous: rank 1 of 2 did not reach rank 0 at 127.0.0.1");
  EXPECT_LT(result.seconds, 6);
}

TEST(WorldErrors, TheLaunchersSocketMustListen) {
  const std::string rank =
      " BINADE_RANK=0 BINADE_WORLD_SIZE=2 BINADE_ADDRESS=127.0.0.1 BINADE_PORT=1 " + kRanks +
      "world";
  expect_output(run_program("BINADE_LISTEN_FD=x" + rank), 1, "got BINADE_LISTEN_FD='x'");
  expect_output(run_program("BINADE_LISTEN_FD=77" + rank), 1, "which is no listening socket");
}

// After SIGSTOP during the rendezvous, the others wait for BINADE_TIMEOUT, not for a minute.
TEST(WorldErrors, TheTimeoutBoundsTheRendezvous) {
  const auto result =
      run_program("BINADE_TIMEOUT=1 " + launched(2) +
                  "sh -c 'test $BINADE_RANK = 0 || kill -STOP $$; exec " + kRanks + "world'");
  expect_output(result, 1, "rendezvous: rank 1 of 2 did not come in 1 s");
  EXPECT_LT(result.seconds, 6);
}

TEST(WorldErrors, NcclThatIsAskedForMustBeThere) {
  expect_output(run_program("BINADE_NCCL=yes " + launched(2) + kRanks + "world"), 1,
                "world: got BINADE_NCCL='yes', expected auto, on or off");
  if (Device::best().is_cpu()) {
    expect_output(run_program("BINADE_NCCL=on " + launched(2) + kRanks + "world"), 1,
                  "world: BINADE_NCCL=on, but rank 0 has no GPU of its own");
  }
}

TEST(WorldErrors, LaunchSaysWhatFailed) {
  expect_output(run_program(launched(2) + "/no/such/program"), 127,
                "/no/such/program: No such file");
  expect_output(run_program(kRanks + "launch 0 true"), 1, "launch: got 0 processes");
  EXPECT_EQ(run_program(launched(3) + "true").status, 0);
  EXPECT_EQ(run_program(launched(2) + "sh -c 'exit $((3 + BINADE_RANK * 0))'").status, 3);
}

}  // namespace
}  // namespace binade::dist::world_test
