#include <binade/dist/transport/mpi_transport.h>
#include <gtest/gtest.h>
#include <tests/dist/job/run_program.h>

namespace binade::dist::mpi_transport_test {
namespace {

class MpiTransport : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!has_mpi() || !has_mpirun()) {
      GTEST_SKIP() << "skipped: no MPI";
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, MpiTransport, testing::Values(1, 2, 3, 7));

TEST_P(MpiTransport, DoesWhatATransportMust) {
  const int ranks = GetParam();
  const auto result = run_program(mpirun(ranks) + BINADE_BIN_DIR "/dist_ranks mpi-transport");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_NE(result.output.find(std::to_string(ranks) + " ranks over mpi"), std::string::npos)
      << result.output;
}

}  // namespace
}  // namespace binade::dist::mpi_transport_test
