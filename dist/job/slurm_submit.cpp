#include <binade/dist/job/slurm_submit.h>
#include <binade/kernels/base/error.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

extern char** environ;

namespace binade::dist {
namespace {

constexpr int kMostNodes = 100'000, kMostPerNode = 4096, kMostSeconds = 65'535;
constexpr std::string_view kArrayMark = "{array}";

// Quotes one argument of a shell command: single quotes protect everything but themselves.
std::string quoted(std::string_view argument) {
  std::string out = "'";
  for (const char c : argument) {
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return out + "'";
}

// The same, with each mark replaced by the number of the array's task.
std::string argument_text(std::string_view argument, bool array) {
  if (const size_t mark = argument.find(kArrayMark); array && mark != argument.npos) {
    return quoted(argument.substr(0, mark)) + "\"$SLURM_ARRAY_TASK_ID\"" +
           argument_text(argument.substr(mark + kArrayMark.size()), array);
  }
  return quoted(argument);
}

// Checks a value for a line "#SBATCH --option=value".
void check_plain(const char* what, std::string_view value) {
  const bool plain = std::all_of(value.begin(), value.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || (c != 0 && std::strchr("_-.,:%@/=+[]*", c) != nullptr);
  });
  check(plain, "slurm submit: got ", what, " '", value,
        "', expected letters, digits and _-.,:%@/=+[]* only");
}

void check_range(const char* what, int value, int least, int most) {
  check(value >= least && value <= most, "slurm submit: got ", what, " ", value, ", expected ",
        least, " to ", most);
}

// The program's file name without bytes that are not allowed in the name of a job.
std::string name_of(const SlurmJob& job) {
  if (!job.name.empty()) {
    return job.name;
  }
  const std::string& program = job.command[0];
  std::string name;
  for (const unsigned char c : program.substr(program.rfind('/') + 1)) {
    name += std::isalnum(c) || c == '_' || c == '-' || c == '.' ? std::string(1, char(c)) : "";
  }
  return name.empty() ? "binade" : name;
}

std::string header(const SlurmJob& job) {
  std::string out = "#!/bin/bash\n# Written by binade slurm submit.\n";
  const auto add = [&](const char* option, const auto& value) {
    out += text("#SBATCH --", option, "=", value, "\n");
  };
  const std::string name = name_of(job);
  add("job-name", name);
  add("nodes", job.nodes);
  add("ntasks-per-node", job.tasks > 0 ? job.tasks : std::max(job.gpus, 1));
  if (job.gpus > 0) {
    add("gpus-per-node", job.gpus);
  }
  if (job.cpus > 0) {
    add("cpus-per-task", job.cpus);
  }
  if (!job.time.empty()) {
    add("time", job.time);
  }
  if (!job.partition.empty()) {
    add("partition", job.partition);
  }
  if (!job.array.empty()) {
    add("array", job.array);
  }
  add("output",
      !job.output.empty() ? job.output : name + (job.array.empty() ? "-%j" : "-%A_%a") + ".out");
  if (job.requeue_seconds > 0) {
    add("open-mode", "append");
    out += "#SBATCH --requeue\n";
    add("signal", text("B:USR1@", job.requeue_seconds));
  }
  for (const std::string& option : job.options) {
    out += "#SBATCH " + option + "\n";
  }
  return out;
}

// SLURM sends SIGUSR1 to the script only, maybe before it has set $ranks. The ranks get half of the
// time before the limit.
std::string requeue(int seconds) {
  return text("\n# ", seconds, R"( s before the time limit: the ranks get SIGINT and have )",
              seconds / 2, R"( s to write a checkpoint;
# then the job goes back into the queue.
back_into_queue() {
  trap '' USR1
  echo "binade: the time limit is near: job $job goes back into the queue"
  scancel --signal=INT "$SLURM_JOB_ID"
  for ((i = 0; i < )",
              seconds / 2, R"(; ++i)); do
    kill -0 "${ranks:-$!}" 2>/dev/null || break
    sleep 1
  done
  scontrol requeue "$job"
  exit
}
job=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID}
job=${job:-$SLURM_JOB_ID}
trap back_into_queue USR1
)");
}

}  // namespace

void check_slurm_job(const SlurmJob& job) {
  check(!job.command.empty() && !job.command[0].empty(),
        "slurm submit: got no program; binade slurm submit --nodes 2 --gpus 4 -- program ...");
  for (const std::string& argument : job.command) {
    check(argument.find('\0') == argument.npos, "slurm submit: got a zero byte in an argument");
  }
  check_range("--nodes", job.nodes, 1, kMostNodes);
  check_range("--gpus", job.gpus, 0, kMostPerNode);
  check_range("--tasks", job.tasks, 0, kMostPerNode);
  check_range("--cpus", job.cpus, 0, kMostPerNode);
  check_range("--requeue", job.requeue_seconds, 0, kMostSeconds);
  check_plain("--name", job.name);
  check_plain("--time", job.time);
  check_plain("--partition", job.partition);
  check_plain("--array", job.array);
  check_plain("--output", job.output);
  for (const std::string& option : job.options) {
    check(option.size() > 2 && option.starts_with("--"), "slurm submit: got --sbatch '", option,
          "', expected an option of sbatch such as --mem=64G");
    check_plain("--sbatch", option);
  }
}

std::string slurm_script(const SlurmJob& job) {
  check_slurm_job(job);
  std::string out = header(job), command = "srun --kill-on-bad-exit=1";
  for (const std::string& argument : job.command) {
    command += " " + argument_text(argument, !job.array.empty());
  }
  if (job.requeue_seconds > 0) {
    // Runs in the background, because bash runs a trap only when no foreground command is running.
    return out + requeue(job.requeue_seconds) + "\n" + command + " &\nranks=$!\nwait \"$ranks\"\n";
  }
  return out + "\n" + command + "\n";
}

int slurm_submit(const std::string& script) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  check(file != nullptr, "slurm submit: no temporary file: ", std::strerror(errno));
  const bool written = std::fwrite(script.data(), 1, script.size(), file.get()) == script.size() &&
                       std::fseek(file.get(), 0, SEEK_SET) == 0;
  check(written, "slurm submit: the script could not be written: ", std::strerror(errno));
  char name[] = "sbatch";
  char* const arguments[] = {name, nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ::fileno(file.get()), 0);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, name, &actions, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  check(error == 0, "slurm submit: sbatch: ", std::strerror(error),
        "; run this where SLURM is, or see the script with --dry-run");
  int ended = 0;
  while (::waitpid(pid, &ended, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
}

}  // namespace binade::dist
