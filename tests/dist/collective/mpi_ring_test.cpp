#include <binade/dist/transport/mpi_transport.h>
#include <gtest/gtest.h>
#include <tests/dist/job/run_program.h>

namespace binade::dist::mpi_ring_test {
namespace {

class MpiRing : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!has_mpi() || !has_mpirun()) {
      GTEST_SKIP() << "skipped: no MPI";
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, MpiRing, testing::Values(1, 2, 3, 4, 7));

TEST_P(MpiRing, IsExactAndRepeats) {
  const auto result = run_program(mpirun(GetParam()) + BINADE_BIN_DIR "/dist_ranks mpi-ring");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_NE(result.output.find("the ring is right"), std::string::npos) << result.output;
}

}  // namespace
}  // namespace binade::dist::mpi_ring_test
