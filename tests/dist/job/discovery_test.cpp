#include <binade/dist/job/discovery_internal.h>
#include <binade/dist/job/network_policy_internal.h>
#include <binade/kernels/base/error.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <tests/support/error_of.h>
#include <unistd.h>

#include <fstream>
#include <map>

namespace binade::dist::discovery_test {
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

// Covers every rank of 1 to 128 nodes with 1 to 8 processes each, as each launcher describes it.
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
        EXPECT_EQ(torchrun.address, nodes == 1 ? "127.0.0.1" : "n0");
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
        EXPECT_EQ(slurm.address, nodes == 1 ? "127.0.0.1" : "gpu001");
        EXPECT_EQ(slurm.port, 20000 + (123456 * 7 + 2) % 10000);
      }
    }
  }
}

TEST(Discovery, AProcessByItselfIsAWorldOfOne) {
  EXPECT_EQ(discover_in({}).size, 1);
  // A batch script, or a shell within an allocation, is a job of one process.
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

TEST(Discovery, RanksOfOneMachineMeetOnLoopback) {
  Variables variables = {{"RANK", "1"},       {"WORLD_SIZE", "2"},      {"LOCAL_WORLD_SIZE", "2"},
                         {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "a.net"}, {"MASTER_PORT", "9"}};
  EXPECT_EQ(discover_in(variables).address, "127.0.0.1");
  Variables told = variables;
  told["BINADE_LISTEN"] = "eth0";
  EXPECT_EQ(discover_in(told).address, "a.net");
  EXPECT_EQ(discover_in(told).listen, "eth0");
  told = variables;
  told["BINADE_ADDRESS"] = "b.net";
  EXPECT_EQ(discover_in(told).address, "b.net");
  variables.erase("LOCAL_WORLD_SIZE");  // nothing says where the ranks are
  variables.erase("LOCAL_RANK");
  EXPECT_EQ(discover_in(variables).address, "a.net");
}

// The secret found with these variables, or the error.
std::string secret_in(const Variables& variables) {
  try {
    return find_secret([&](const char* name) -> const char* {
             const auto found = variables.find(name);
             return found == variables.end() ? nullptr : found->second.c_str();
           })
        .bytes;
  } catch (const Error& error) {
    return error.what();
  }
}

class SecretFile : public testing::Test {
 protected:
  void write(const std::string& text, mode_t mode) {
    ::unlink(path_.c_str());
    std::ofstream(path_) << text;
    ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
  }
  std::string read() const { return secret_in({{"BINADE_SECRET_FILE", path_}}); }
  void TearDown() override { ::unlink(path_.c_str()); }

  const std::string path_ = testing::TempDir() + "secret-" + std::to_string(::getpid());
};

TEST_F(SecretFile, IsReadIfNobodyElseCan) {
  for (const mode_t mode : {0600, 0400}) {
    write("sixteen letters.\n", mode);
    EXPECT_EQ(read(), "sixteen letters.");
  }
  EXPECT_EQ(secret_in({{"BINADE_SECRET_FILE", path_}, {"BINADE_SECRET", "another of sixteen"}}),
            "another of sixteen");
  EXPECT_EQ(secret_in({}), "");
}

TEST_F(SecretFile, IsRefusedIfOthersCan) {
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0610, 0601}) {
    write("sixteen letters.", mode);
    EXPECT_NE(read().find("expected 0600"), std::string::npos) << mode;
    EXPECT_EQ(read().find("sixteen"), std::string::npos);
  }
  if (::geteuid() == 0) {
    write("sixteen letters.", 0600);
    ASSERT_EQ(::chown(path_.c_str(), 1, 1), 0);
    EXPECT_NE(read().find("it belongs to user 1"), std::string::npos);
  }
}

TEST_F(SecretFile, MustHoldEnough) {
  write("fifteen letters   \n\n", 0600);
  EXPECT_NE(read().find("holds 15 bytes, expected 16 or more"), std::string::npos) << read();
  EXPECT_EQ(read().find("fifteen"), std::string::npos);
  write(std::string(4097, 's'), 0600);
  EXPECT_NE(read().find("more than 4096 bytes"), std::string::npos);
  EXPECT_NE(secret_in({{"BINADE_SECRET", "short"}}).find("holds 5 bytes"), std::string::npos);
}

TEST_F(SecretFile, MustBeAFile) {
  EXPECT_NE(read().find("No such file"), std::string::npos);
  EXPECT_NE(secret_in({{"BINADE_SECRET_FILE", "/"}}).find("no regular file"), std::string::npos);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_NE(read().find("no regular file"), std::string::npos);  // and the read does not block
}

TEST(Secrets, OfALauncherDiffer) {
  const std::string secret = new_secret();
  EXPECT_EQ(secret.size(), 64U);
  EXPECT_EQ(secret.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(secret, new_secret());
}

TEST(Secrets, OfSeveralJobsGiveOtherKeys) {
  const JobSecret secret{.bytes = "secret"};
  const ProcessInfo process{.port = 5, .job = "slurm 7.0"};
  const Key key = job_key(secret, process);
  EXPECT_EQ(key, job_key(secret, process));
  EXPECT_NE(key, job_key({.bytes = "Secret"}, process));
  EXPECT_NE(key, job_key(secret, {.port = 6, .job = "slurm 7.0"}));
  EXPECT_NE(key, job_key(secret, {.port = 5, .job = "slurm 7.1"}));
}

TEST(ListenPolicy, OffLoopbackOnlyWithASecret) {
  const ProcessInfo process{.launcher = Launcher::torchrun, .size = 2, .local_size = 2};
  check_may_listen("127.0.0.1", {}, process);
  check_may_listen("10.0.0.1", {.bytes = "secret"}, process);
  const std::string error = error_of([&] { check_may_listen("10.0.0.1", {}, process); });
  EXPECT_NE(error.find("torchrun gives the ranks no secret"), std::string::npos) << error;
  EXPECT_NE(error.find("BINADE_SECRET_FILE"), std::string::npos);
  EXPECT_EQ(error.find('\n'), std::string::npos);
}

TEST(ListenPolicy, OneAddress) {
  ProcessInfo process{.size = 2, .local_size = 2, .address = "127.0.0.1"};
  EXPECT_EQ(meeting_address(process), "127.0.0.1");
  EXPECT_EQ(data_address(process, "10.1.2.3"), "10.1.2.3");
  process.listen = "lo";
  EXPECT_EQ(data_address(process, "10.1.2.3"), "127.0.0.1");
  for (const char* all : {"0.0.0.0", "255.255.255.255", "no-such-interface", "*"}) {
    process.listen = all;
    EXPECT_THROW(meeting_address(process), Error) << all;
    EXPECT_THROW(data_address(process, "10.1.2.3"), Error) << all;
  }
  EXPECT_NE(error_of([] { listen_at("0.0.0.0", 0); }).find("every address of this machine"),
            std::string::npos);
  // Other machines cannot reach the loopback interface of rank 0.
  const ProcessInfo several{.size = 4, .local_size = 2, .address = "127.0.1.1"};
  EXPECT_NE(error_of([&] { meeting_address(several); }).find("set BINADE_LISTEN"),
            std::string::npos);
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
}  // namespace binade::dist::discovery_test
