#include <binade/dist/job/discovery_internal.h>
#include <binade/kernels/base/error.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace binade::dist {
namespace {

class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  // Empty if not set.
  std::string text_of(const char* name) const {
    const char* value = environment_(name);
    return value ? value : "";
  }
  bool has(const char* name) const { return !text_of(name).empty(); }

  std::string needed(const char* name, Launcher launcher) const {
    std::string value = text_of(name);
    check(!value.empty(), "world: this process was started by ", to_string(launcher), ", but ",
          name, " is not set");
    return value;
  }

  int number(const char* name, Launcher launcher) const {
    const std::string value = needed(name, launcher);
    int result = 0;
    const char* end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, result);
    check(error == std::errc() && stop == end, "world: got ", name, "='", value,
          "', expected a number");
    return result;
  }
  int number(const char* name, Launcher launcher, int otherwise) const {
    return has(name) ? number(name, launcher) : otherwise;
  }

 private:
  const Environment& environment_;
};

Launcher launcher_of(const Variables& v) {
  if (v.has("BINADE_RANK")) {
    return Launcher::binade;
  }
  if (v.has("OMPI_COMM_WORLD_SIZE")) {
    return Launcher::open_mpi;
  }
  if (v.has("RANK") && v.has("WORLD_SIZE")) {
    return Launcher::torchrun;
  }
  // A batch script has SLURM_PROCID too, but only steps started by srun have a number as step id.
  const std::string step = v.text_of("SLURM_STEP_ID");
  if (v.has("SLURM_PROCID") && !step.empty() && step[0] >= '0' && step[0] <= '9') {
    return Launcher::slurm;
  }
  return Launcher::none;
}

void from_slurm(const Variables& v, ProcessInfo& p) {
  p.rank = v.number("SLURM_PROCID", p.launcher);
  p.size = v.has("SLURM_STEP_NUM_TASKS") ? v.number("SLURM_STEP_NUM_TASKS", p.launcher)
                                         : v.number("SLURM_NTASKS", p.launcher);
  p.local_rank = v.number("SLURM_LOCALID", p.launcher);
  const char* tasks =
      v.has("SLURM_STEP_TASKS_PER_NODE") ? "SLURM_STEP_TASKS_PER_NODE" : "SLURM_TASKS_PER_NODE";
  const auto per_node = slurm_tasks_per_node(v.needed(tasks, p.launcher));
  const int node = v.number("SLURM_NODEID", p.launcher);
  check(node >= 0 && static_cast<size_t>(node) < per_node.size(), "world: got SLURM_NODEID ", node,
        ", but ", tasks, " names ", per_node.size(), " nodes");
  p.local_size = per_node[static_cast<size_t>(node)];
  p.address = slurm_hosts(v.needed(
      v.has("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST", p.launcher))[0];
  const int job = v.number("SLURM_JOB_ID", p.launcher),
            step = v.number("SLURM_STEP_ID", p.launcher);
  p.port = 20000 + static_cast<int>((static_cast<int64_t>(job) * 7 + step) % 10000);
  p.job = text("slurm ", job, ".", step);
}

void check_port(const ProcessInfo& p) {
  check(p.port >= 0 && p.port < 65536, "world: got port ", p.port, " from ", to_string(p.launcher));
}

void check_placement(const ProcessInfo& p) {
  const auto who = to_string(p.launcher);
  check(p.size >= 1 && p.size <= 1 << 20, "world: got ", p.size, " ranks from ", who);
  check(p.rank >= 0 && p.rank < p.size, "world: got rank ", p.rank, " of ", p.size, " from ", who);
  check(p.local_rank >= 0 && p.local_rank < p.local_size && p.local_size <= p.size,
        "world: got local rank ", p.local_rank, " of ", p.local_size, " from ", who);
  check_port(p);
}

}  // namespace

ProcessInfo discover(const Environment& environment) {
  const Variables v(environment);
  ProcessInfo p;
  p.launcher = launcher_of(v);
  switch (p.launcher) {
    case Launcher::none: return p;
    case Launcher::binade:
      p.rank = v.number("BINADE_RANK", p.launcher);
      p.size = v.number("BINADE_WORLD_SIZE", p.launcher);
      p.local_rank = v.number("BINADE_LOCAL_RANK", p.launcher, p.rank);
      p.local_size = v.number("BINADE_LOCAL_SIZE", p.launcher, p.size);
      p.address = v.needed("BINADE_ADDRESS", p.launcher);
      p.port = v.number("BINADE_PORT", p.launcher);
      break;
    case Launcher::torchrun:
      p.rank = v.number("RANK", p.launcher);
      p.size = v.number("WORLD_SIZE", p.launcher);
      p.local_size = v.number("LOCAL_WORLD_SIZE", p.launcher, p.size);
      p.local_rank = v.number("LOCAL_RANK", p.launcher, p.rank % std::max(p.local_size, 1));
      p.address = v.needed("MASTER_ADDR", p.launcher);
      p.port = v.number("MASTER_PORT", p.launcher);
      check_port(p);
      p.port += v.text_of("TORCHELASTIC_USE_AGENT_STORE") == "True";
      p.job = text("torchrun ", v.text_of("TORCHELASTIC_RUN_ID"));
      break;
    case Launcher::open_mpi:
      p.rank = v.number("OMPI_COMM_WORLD_RANK", p.launcher);
      p.size = v.number("OMPI_COMM_WORLD_SIZE", p.launcher);
      p.local_rank = v.number("OMPI_COMM_WORLD_LOCAL_RANK", p.launcher);
      p.local_size = v.number("OMPI_COMM_WORLD_LOCAL_SIZE", p.launcher);
      break;
    case Launcher::slurm: from_slurm(v, p); break;
  }
  p.listen = v.text_of("BINADE_LISTEN");
  const bool says_where = p.launcher == Launcher::slurm ||
                          (p.launcher == Launcher::torchrun && v.has("LOCAL_WORLD_SIZE"));
  if (says_where && p.local_size == p.size && p.listen.empty()) {
    p.address = "127.0.0.1";
  }
  p.address = v.has("BINADE_ADDRESS") ? v.text_of("BINADE_ADDRESS") : p.address;
  p.port = v.number("BINADE_PORT", p.launcher, p.port);
  check_placement(p);
  return p;
}

ProcessInfo discover() {
  return discover([](const char* name) { return std::getenv(name); });
}

}  // namespace binade::dist
