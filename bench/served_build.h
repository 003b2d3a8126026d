// A child process that times kernels on request (kernel_serve.h): the binade or the kernel_bench of
// a build.
#pragma once
#include <bench/kernel_timer.h>

#include <sys/types.h>

#include <cstdio>
#include <string>

namespace binade::bench {

class ServedBuild {
 public:
  struct Options {
    std::string device = "cpu";
    int threads = 0;
    double plant = 1;  // for tests: makes its samples slower by this factor
  };
  // Throws if the program does not start or answer.
  ServedBuild(const std::string& program, const Options& options);
  ~ServedBuild();
  ServedBuild(const ServedBuild&) = delete;
  ServedBuild& operator=(const ServedBuild&) = delete;

  void prepare(const CaseSettings& settings);
  double sample();  // seconds per call
  void drop();

 private:
  std::string ask(const std::string& request);
  [[noreturn]] void fail_with(const std::string& what) const;

  std::string program_;
  pid_t process_ = -1;
  std::FILE *in_ = nullptr, *out_ = nullptr;
};

}  // namespace binade::bench
