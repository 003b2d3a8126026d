// Runs a command and returns its output (both streams) and its exit status.
#pragma once
#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace binade::dist {

struct ProgramResult {
  int status;  // exit status; 128 + N for signal N
  std::string output;
  double seconds;  // duration
  double ended;    // time of its end on the monotonic clock
};

inline ProgramResult run_program(const std::string& command) {
  const auto start = std::chrono::steady_clock::now();
  std::FILE* pipe = popen(("{ " + command + " ; } 2>&1 </dev/null").c_str(), "r");
  std::string output;
  char part[4096];
  while (const size_t n = std::fread(part, 1, sizeof part, pipe)) {
    output.append(part, n);
  }
  const int ended = pclose(pipe);
  const int status = WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
  const auto end = std::chrono::steady_clock::now();
  return {status, output, std::chrono::duration<double>(end - start).count(),
          std::chrono::duration<double>(end.time_since_epoch()).count()};
}

inline bool has_mpirun() { return std::system("mpirun --version >/dev/null 2>&1") == 0; }

// Returns the start of a command that runs `ranks` processes under Open MPI.
inline std::string mpirun(int ranks) {
  return "OMPI_MCA_rmaps_base_oversubscribe=1 timeout -k 5 120 mpirun --oversubscribe "
         "--allow-run-as-root -np " +
         std::to_string(ranks) + " ";
}

}  // namespace binade::dist
