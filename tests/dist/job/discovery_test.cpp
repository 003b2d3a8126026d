#include <binade/dist/job/discovery_internal.h>
#include <binade/kernels/base/error.h>
#include <gtest/gtest.h>

#include <map>

namespace binade::dist {
namespace {

using Variables = std::map<std::string, std::string>;

ProcessInfo discover_in(const Variables& variables) {
  return discover([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string error_in(const Variables& variables) {
  try {
    discover_in(variables);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

void expect_placement(const ProcessInfo& p, Launcher launcher, int node, int local, int nodes,
                      int per_node) {
  EXPECT_EQ(p.launcher, launcher);
  EXPECT_EQ(p.rank, node * per_node + local);
  EXPECT_EQ(p.size, nodes * per_node);
  EXPECT_EQ(p.local_rank, local);
  EXPECT_EQ(p.local_size, per_node);
}

// Every rank of 1 to 128 nodes with 1 to 8 processes each, as each launcher describes it.
TEST(Discovery, FindsEveryRankOfEveryLauncher) {
  for (const int nodes : {1, 2, 16, 128}) {
    for (const int per_node : {1, 4, 8}) {
      for (int rank = 0; rank < nodes * per_node; ++rank) {
        const int node = rank / per_node, local = rank % per_node;
        const auto number = [](int value) { return std::to_string(value); };
        expect_placement(discover_in({{"BINADE_RANK", number(rank)},
                                      {"BINADE_WORLD_SIZE", number(nodes * per_node)},
                                      {"BINADE_LOCAL_RANK", number(local)},
                                      {"BINADE_LOCAL_SIZE", number(per_node)},
                                      {"BINADE_ADDRESS", "127.0.0.1"},
                                      {"BINADE_PORT", "4000"}}),
                         Launcher::binade, node, local, nodes, per_node);
        const ProcessInfo torchrun = discover_in({{"RANK", number(rank)},
                                                  {"WORLD_SIZE", number(nodes * per_node)},
                                                  {"LOCAL_RANK", number(local)},
                                                  {"LOCAL_WORLD_SIZE", number(per_node)},
                                                  {"MASTER_ADDR", "n0"},
                                                  {"MASTER_PORT", "29500"}});
        expect_placement(torchrun, Launcher::torchrun, node, local, nodes, per_node);
        EXPECT_EQ(torchrun.address, "n0");
        EXPECT_EQ(torchrun.port, 29500);
        expect_placement(discover_in({{"OMPI_COMM_WORLD_RANK", number(rank)},
                                      {"OMPI_COMM_WORLD_SIZE", number(nodes * per_node)},
                                      {"OMPI_COMM_WORLD_LOCAL_RANK", number(local)},
                                      {"OMPI_COMM_WORLD_LOCAL_SIZE", number(per_node)},
                                      {"SLURM_PROCID", "0"},
                                      {"SLURM_STEP_ID", "0"}}),
                         Launcher::open_mpi, node, local, nodes, per_node);
        const ProcessInfo slurm = discover_in(
            {{"SLURM_PROCID", number(rank)},
             {"SLURM_NTASKS", number(nodes * per_node)},
             {"SLURM_LOCALID", number(local)},
             {"SLURM_NODEID", number(node)},
             {"SLURM_STEP_ID", "2"},
             {"SLURM_JOB_ID", "123456"},
             {"SLURM_STEP_TASKS_PER_NODE", number(per_node) + "(x" + number(nodes) + ")"},
             {"SLURM_STEP_NODELIST", "gpu[001-128]"}});
        expect_placement(slurm, Launcher::slurm, node, local, nodes, per_node);
        EXPECT_EQ(slurm.address, "gpu001");
        EXPECT_EQ(slurm.port, 20000 + (123456 * 7 + 2) % 10000);
      }
    }
  }
}

TEST(Discovery, AProcessByItselfIsAWorldOfOne) {
  EXPECT_EQ(discover_in({}).size, 1);
  // A batch script, and a shell within an allocation.
  EXPECT_EQ(discover_in({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "1"}}).size,
            1);
  EXPECT_EQ(discover_in({{"RANK", "3"}}).size, 1);
}

TEST(Discovery, AvoidsThePortOfTorchrun) {
  const Variables variables = {{"RANK", "1"},
                               {"WORLD_SIZE", "2"},
                               {"MASTER_ADDR", "a"},
                               {"MASTER_PORT", "29500"},
                               {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
  EXPECT_EQ(discover_in(variables).port, 29501);
  Variables own = variables;
  own["BINADE_PORT"] = "777";
  EXPECT_EQ(discover_in(own).port, 777);
}

TEST(Discovery, SaysWhatIsMissingOrWrong) {
  EXPECT_EQ(error_in({{"RANK", "1"}, {"WORLD_SIZE", "2"}}),
            "world: this process was started by torchrun, but MASTER_ADDR is not set");
  EXPECT_EQ(error_in({{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "two"}}),
            "world: got OMPI_COMM_WORLD_RANK='two', expected a number");
  EXPECT_EQ(
      error_in({{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}}),
      "world: got rank 2 of 2 from torchrun");
}

TEST(SlurmHosts, AreExpanded) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(slurm_hosts("a"), (Names{"a"}));
  EXPECT_EQ(slurm_hosts("n[001-003,7],gpu1"), (Names{"n001", "n002", "n003", "n7", "gpu1"}));
  EXPECT_EQ(slurm_hosts("r[1-2]c[08-10].x"),
            (Names{"r1c08.x", "r1c09.x", "r1c10.x", "r2c08.x", "r2c09.x", "r2c10.x"}));
  EXPECT_EQ(slurm_hosts("node-[1,3]"), (Names{"node-1", "node-3"}));
  EXPECT_EQ(slurm_hosts("n[1-128]").size(), 128U);
  for (const char* bad : {"", "n[1-", "n[2-1]", "n[a]", "n[]", "a,,b", "n[1-999999999]"}) {
    EXPECT_THROW(slurm_hosts(bad), Error) << bad;
  }
}

TEST(SlurmTasks, AreExpanded) {
  EXPECT_EQ(slurm_tasks_per_node("4(x2),3"), (std::vector<int>{4, 4, 3}));
  EXPECT_EQ(slurm_tasks_per_node("8"), (std::vector<int>{8}));
  for (const char* bad : {"", "4(x", "4(x2", "x", "1,,2"}) {
    EXPECT_THROW(slurm_tasks_per_node(bad), Error) << bad;
  }
}

}  // namespace
}  // namespace binade::dist
