// Times one prepared kernel. Shared by bench/one and its server.
#pragma once
#include <bench/kernel_cases.h>
#include <bench/statistics.h>

#include <string>
#include <vector>

namespace binade::bench {

struct CaseSettings {
  std::string kernel;  // a case's name, or kCopy
  int64_t rows = 0, cols = 0;
  DType dtype = DType::f32;
  Device device = {};
  std::string provider = {};  // own, library, ...; empty: the current one
};

// A copy by the runtime (cudaMemcpyAsync between two arrays of the device) that reads and writes
// rows x cols elements each. On the CPU it is the kernel cast_from_f32, which uses all threads.
inline constexpr const char* kCopy = "memcpy";

Prepared prepare(const CaseSettings& settings);
// A copy of as many bytes, read and written, as the case moves.
Prepared copy_of_bytes(double bytes, Device device);

DType parse_floating(const std::string& name, const char* flag);

// A sample times several calls between two waits for the device, enough to take 5 ms or more, so
// the resolution of the clock does not matter.
class Timer {
 public:
  // Runs the case once to warm up caches, pages and the first launch, then finds how many calls a
  // sample needs. REQUIRES: `work` outlives the timer.
  Timer(const Prepared& work, Device device);
  double sample();       // seconds per call, over calls() calls
  double sample_once();  // seconds of a single call
  int calls() const { return calls_; }

 private:
  const Prepared& work_;
  Device device_;
  int calls_ = 1;
};

// Times one case and a copy in turn.
struct Measured {
  double seconds = 0, spread = 0, share_of_copy = 0;
  double bytes = 0, flops = 0;
};
Measured measure(const CaseSettings& settings, int samples);
std::string json_of(const CaseSettings& settings, const Measured& measured);

}  // namespace binade::bench
