// The launcher opens rank 0's socket, so that no rank can connect too early, and passes it to rank
// 0.
#include <binade/core/io/program_streams.h>
#include <binade/dist/job/launch.h>
#include <binade/dist/job/network_policy_internal.h>
#include <binade/dist/job/process_exit_internal.h>
#include <binade/dist/transport/delayed_transport.h>
#include <binade/dist/transport/socket_internal.h>
#include <binade/kernels/base/printable.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace binade::dist {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void on_signal(int signal) { interrupted = signal; }

struct Child {
  pid_t pid;
  bool running = true;
  bool stopped = false;  // by SIGSTOP and the like: it cannot end on its own
};

// The settings with which all ranks of a job are started.
struct LaunchedJob {
  const std::vector<std::string>& command;
  const LaunchOptions& options;
  const Socket& listener;
  std::string secret;
  pid_t parent;
};

// Runs in the child: may only use what is safe between fork and exec of a single-threaded process.
[[noreturn]] void become(const LaunchedJob& job, int rank) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // no rank outlives its launcher
  if (::getppid() != job.parent) {
    end_process(127, "");
  }
  const auto set = [](const char* name, const std::string& value) {
    ::setenv(name, value.c_str(), 1);
  };
  set("BINADE_RANK", std::to_string(rank));
  set("BINADE_WORLD_SIZE", std::to_string(job.options.ranks));
  set("BINADE_LOCAL_RANK", std::to_string(rank));
  set("BINADE_LOCAL_SIZE", std::to_string(job.options.ranks));
  set("BINADE_ADDRESS", "127.0.0.1");
  set("BINADE_PORT", std::to_string(job.listener.port()));
  set("BINADE_SECRET", job.secret);
  if (!job.options.link_delay.empty()) {
    set("BINADE_LINK_DELAY", job.options.link_delay);
  }
  for (const char* other : {"BINADE_LISTEN_FD", "BINADE_LISTEN", "BINADE_SECRET_FILE"}) {
    ::unsetenv(other);  // the launcher's job is on this machine and has its own secret
  }
  if (rank == 0) {
    ::fcntl(job.listener.file(), F_SETFD, 0);
    set("BINADE_LISTEN_FD", std::to_string(job.listener.file()));
  }
  std::vector<char*> arguments;
  for (const std::string& argument : job.command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  restore_program_signals();
  ::execvp(arguments[0], arguments.data());
  end_process(127, text("binade: error: launch: ", printable(job.command[0]), ": ",
                        std::strerror(errno), "\n"));
}

int status_of(int ended) { return WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended); }

void report(int rank, pid_t pid, int ended) {
  if (WIFSIGNALED(ended)) {
    std::fprintf(stderr, "binade launch: rank %d (pid %d) was ended by signal %d (%s)\n", rank, pid,
                 WTERMSIG(ended), ::strsignal(WTERMSIG(ended)));
  } else {
    std::fprintf(stderr, "binade launch: rank %d (pid %d) exited with status %d\n", rank, pid,
                 WEXITSTATUS(ended));
  }
}

void signal_all(const std::vector<Child>& children, int signal) {
  for (const Child& child : children) {
    if (child.running) {
      ::kill(child.pid, signal);
    }
  }
}

// Waits for all; returns the status of the first that failed.
class Waiting {
 public:
  Waiting(std::vector<Child>& children, double grace) : children_(children), grace_(grace) {}

  int wait() {
    while (std::any_of(children_.begin(), children_.end(), [](auto& c) { return c.running; })) {
      for (size_t rank = 0; rank < children_.size(); ++rank) {
        look_at(static_cast<int>(rank));
      }
      forward_signal();
      end_the_rest();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return failure_;
  }

 private:
  void look_at(int rank) {
    Child& child = children_[static_cast<size_t>(rank)];
    int status = 0;
    if (!child.running ||
        ::waitpid(child.pid, &status, WNOHANG | WUNTRACED | WCONTINUED) != child.pid) {
      return;
    }
    child.stopped = WIFSTOPPED(status);
    if (!WIFEXITED(status) && !WIFSIGNALED(status)) {
      return;
    }
    child.running = false;
    if (failure_ == 0 && status_of(status) != 0) {
      failure_ = status_of(status);
      report(rank, child.pid, status);
      deadline_ = monotonic_seconds() + grace_;
    }
  }

  void forward_signal() {
    if (interrupted) {
      signal_all(children_, interrupted);
      failure_ = failure_ ? failure_ : 128 + interrupted;
      interrupted = 0;
      deadline_ = monotonic_seconds() + grace_;
    }
  }

  void end_the_rest() {
    for (const Child& child : children_) {
      const bool late = monotonic_seconds() > deadline_ || child.stopped;
      if (child.running && deadline_ > 0 && late) {
        ::kill(child.pid, SIGKILL);
      }
    }
  }

  std::vector<Child>& children_;
  const double grace_;
  int failure_ = 0;
  double deadline_ = 0;  // after a failure or an interrupt
};

}  // namespace

void check_launch(const std::vector<std::string>& command, const LaunchOptions& options) {
  check(options.ranks >= 1 && options.ranks <= 4096, "launch: got ", options.ranks,
        " processes, expected 1 to 4096");
  check(options.grace_seconds >= 0, "launch: got a grace of ", options.grace_seconds,
        " s, expected 0 or more");
  check(!command.empty() && !command[0].empty(),
        "launch: got no program; binade launch -n 4 program arguments...");
  parse_link_delay(options.link_delay);  // so that one process reports the error, not all
}

int launch(const std::vector<std::string>& command, const LaunchOptions& options) {
  check_launch(command, options);
  Socket listener = listen_at("127.0.0.1", 0);
  const LaunchedJob job{.command = command,
                        .options = options,
                        .listener = listener,
                        .secret = new_secret(),
                        .parent = ::getpid()};
  interrupted = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  struct sigaction before_interrupt, before_terminate;
  ::sigaction(SIGINT, &action, &before_interrupt);
  ::sigaction(SIGTERM, &action, &before_terminate);
  std::vector<Child> children;
  for (int rank = 0; rank < options.ranks; ++rank) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      become(job, rank);
    }
    if (pid < 0) {
      const std::string reason = std::strerror(errno);
      signal_all(children, SIGKILL);
      Waiting(children, 0).wait();
      fail("launch: process ", rank, " of ", options.ranks, " could not be started: ", reason);
    }
    children.push_back({pid});
  }
  listener.close();  // rank 0 has its own copy
  const int status = Waiting(children, options.grace_seconds).wait();
  ::sigaction(SIGINT, &before_interrupt, nullptr);
  ::sigaction(SIGTERM, &before_terminate, nullptr);
  return status;
}

}  // namespace binade::dist
