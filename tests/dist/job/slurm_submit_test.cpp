// Compares the batch script with golden files, and runs it in bash with fake SLURM programs.
#include <binade/core/io/file_system.h>
#include <binade/dist/job/slurm_submit.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <tests/dist/job/run_program.h>
#include <tests/support/error_of.h>

#include <fstream>
#include <iterator>

namespace binade::dist::slurm_submit_test {
namespace {

SlurmJob array_job() {
  return {.command = {"/opt/my programs/train", "--run", "runs/{array}", "--note",
                      "it's $HOME `x` \"y\" \\ *", ""},
          .nodes = 16,
          .gpus = 8,
          .cpus = 12,
          .name = "study",
          .time = "1-12:00:00",
          .partition = "gpu,long",
          .array = "0-9%2",
          .requeue_seconds = 90,
          .options = {"--mem=64G"}};
}

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string golden(const std::string& name) {
  return file_text(BINADE_SOURCE_DIR "/tests/dist/golden/" + name);
}

std::string error_of(const SlurmJob& job) {
  return binade::error_of([&] { slurm_script(job); });
}

// A folder of fake SLURM programs that write their actions to stdout.
class SlurmPrograms : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "slurm_submit_test." + std::to_string(::getpid());
    ::mkdir(folder_.c_str(), 0700);
  }
  void TearDown() override { run_program("rm -r " + folder_); }

  void put(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
    ::chmod((folder_ + "/" + name).c_str(), 0700);
  }
  ProgramResult run(const std::string& command) {
    return run_program("cd " + folder_ + " && PATH=" + folder_ + ":$PATH " + command);
  }
  std::string folder_;
};

TEST(SlurmScript, IsTheGoldenOne) {
  EXPECT_EQ(slurm_script({.command = {"./train_classifier"}, .requeue_seconds = 0}),
            golden("slurm_plain.sh"));
  EXPECT_EQ(slurm_script(array_job()), golden("slurm_array.sh"));
}

TEST(SlurmScript, NamesTheJobAfterTheProgram) {
  EXPECT_NE(slurm_script({.command = {"/a/my train\n"}}).find("--job-name=mytrain\n"),
            std::string::npos);
  EXPECT_NE(slurm_script({.command = {"/a/ /"}}).find("--job-name=binade\n"), std::string::npos);
  EXPECT_NE(slurm_script({.command = {"x", "{array}"}}).find("'x' '{array}' &"),
            std::string::npos);  // without an array it is no mark
}

TEST(SlurmScript, NamesWhatDoesNotFit) {
  EXPECT_EQ(error_of({}),
            "slurm submit: got no program; binade slurm submit --nodes 2 --gpus 4 -- program ...");
  EXPECT_EQ(error_of({.command = {"x"}, .nodes = 0}),
            "slurm submit: got --nodes 0, expected 1 to 100000");
  EXPECT_EQ(error_of({.command = {"x"}, .gpus = -1}),
            "slurm submit: got --gpus -1, expected 0 to 4096");
  EXPECT_EQ(error_of({.command = {"x"}, .name = "a\n#SBATCH --uid=0"}),
            "slurm submit: got --name 'a\\x0a#SBATCH --uid=0', expected letters, digits and "
            "_-.,:%@/=+[]* only");
  EXPECT_EQ(error_of({.command = {"x"}, .options = {"mem=64G"}}),
            "slurm submit: got --sbatch 'mem=64G', expected an option of sbatch such as --mem=64G");
}

TEST_F(SlurmPrograms, EveryArgumentArrivesAsItIs) {
  put("srun", "#!/bin/bash\nprintf '[%s]\\n' \"$@\"\n");
  put("job", slurm_script(array_job()));
  const auto result = run("SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=3 SLURM_JOB_ID=11 ./job");
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.output,
            "[--kill-on-bad-exit=1]\n[/opt/my programs/train]\n[--run]\n[runs/3]\n[--note]\n"
            "[it's $HOME `x` \"y\" \\ *]\n[]\n");
}

TEST_F(SlurmPrograms, GivesOnTheStatusOfTheRanks) {
  put("srun", "#!/bin/bash\nexit 75\n");
  for (const int seconds : {0, 60}) {
    put("job", slurm_script({.command = {"x"}, .requeue_seconds = seconds}));
    EXPECT_EQ(run("SLURM_JOB_ID=11 ./job").status, 75);
  }
}

// The signal arrives while the ranks run, and scancel ends them. Here it sends TERM, because
// background processes of bash ignore INT; SLURM starts ranks differently.
TEST_F(SlurmPrograms, GoesBackIntoTheQueue) {
  put("srun",
      "#!/bin/bash\ntrap 'echo checkpoint; exit 0' TERM\necho $$ >ranks\nkill -USR1 $PPID\n"
      "while :; do sleep 0.05; done\n");
  put("scancel", "#!/bin/bash\necho scancel $*\nkill -TERM $(cat ranks)\n");
  put("scontrol", "#!/bin/bash\necho scontrol $*\n");
  put("job", slurm_script(array_job()));
  const auto result = run("SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=3 SLURM_JOB_ID=11 ./job");
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.output,
            "binade: the time limit is near: job 7_3 goes back into the queue\n"
            "scancel --signal=INT 11\ncheckpoint\nscontrol requeue 7_3\n");
}

TEST_F(SlurmPrograms, SbatchGetsTheScript) {
  put("sbatch", "#!/bin/bash\ncat >" + folder_ + "/submitted\nexit 3\n");
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (folder_ + ":" + path).c_str(), 1);
  const std::string script = slurm_script(array_job());
  const int status = slurm_submit(script);
  ::setenv("PATH", folder_.c_str(), 1);
  EXPECT_EQ(status, 3);
  EXPECT_EQ(file_text(folder_ + "/submitted"), script);
  ::unlink((folder_ + "/sbatch").c_str());
  try {
    slurm_submit(script);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "slurm submit: sbatch: No such file or directory; run this where SLURM is, or see "
                 "the script with --dry-run");
  }
  ::setenv("PATH", path.c_str(), 1);
}

}  // namespace
}  // namespace binade::dist::slurm_submit_test
