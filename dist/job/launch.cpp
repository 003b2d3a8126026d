// The launcher opens rank 0's socket, so that no rank can connect too early, and passes it to rank
// 0.
#include <binade/core/io/program_streams.h>
#include <binade/dist/job/launch.h>
#include <binade/dist/job/process_exit_internal.h>
#include <binade/dist/transport/delayed_transport.h>
#include <binade/dist/transport/socket_internal.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

namespace binade::dist {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void on_signal(int signal) { interrupted = signal; }

struct Child {
  pid_t pid;
  bool running = true;
};

std::string random_secret() {
  std::random_device random;
  char text[40];
  std::snprintf(text, sizeof text, "%08x%08x%08x", random(), random(), random());
  return text;
}

// The settings with which all ranks of a job are started.
struct Job {
  const std::vector<std::string>& command;
  const LaunchOptions& options;
  const Socket& listener;
  std::string secret;
  pid_t parent;
};

// Runs in the child: may only use what is safe between fork and exec of a single-threaded process.
[[noreturn]] void become(const Job& job, int rank) {
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
  ::unsetenv("BINADE_LISTEN_FD");
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
  end_process(127,
              text("binade: error: launch: ", job.command[0], ": ", std::strerror(errno), "\n"));
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
int wait_for_all(std::vector<Child>& children, double grace) {
  int failure = 0;
  double deadline = 0;  // after a failure or an interrupt
  for (size_t running = children.size(); running > 0;) {
    for (size_t rank = 0; rank < children.size(); ++rank) {
      Child& child = children[rank];
      int ended = 0;
      if (child.running && ::waitpid(child.pid, &ended, WNOHANG) == child.pid) {
        child.running = false;
        --running;
        if (failure == 0 && status_of(ended) != 0) {
          failure = status_of(ended);
          report(static_cast<int>(rank), child.pid, ended);
          deadline = monotonic_seconds() + grace;
        }
      }
    }
    if (interrupted) {
      signal_all(children, interrupted);
      failure = failure ? failure : 128 + interrupted;
      interrupted = 0;
      deadline = monotonic_seconds() + grace;
    }
    if (deadline > 0 && monotonic_seconds() > deadline) {
      signal_all(children, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return failure;
}

}  // namespace

int launch(const std::vector<std::string>& command, const LaunchOptions& options) {
  check(options.ranks >= 1 && options.ranks <= 4096, "launch: got ", options.ranks,
        " processes, expected 1 to 4096");
  check(options.grace_seconds >= 0, "launch: got a grace of ", options.grace_seconds,
        " s, expected 0 or more");
  check(!command.empty(), "launch: got no program; binade launch -n 4 program arguments...");
  parse_link_delay(options.link_delay);  // so that one process reports the error, not all
  Socket listener = listen_at("127.0.0.1", 0, options.ranks);
  const Job job{.command = command,
                .options = options,
                .listener = listener,
                .secret = random_secret(),
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
      wait_for_all(children, 0);
      fail("launch: process ", rank, " of ", options.ranks, " could not be started: ", reason);
    }
    children.push_back({pid});
  }
  listener.close();  // rank 0 has its own copy
  const int status = wait_for_all(children, options.grace_seconds);
  ::sigaction(SIGINT, &before_interrupt, nullptr);
  ::sigaction(SIGTERM, &before_terminate, nullptr);
  return status;
}

}  // namespace binade::dist
