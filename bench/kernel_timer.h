// Times one prepared kernel; what bench/one and its server share.
#pragma once
#include <bench/kernel_cases.h>
#include <bench/statistics.h>

#include <string>
#include <vector>

namespace binade::bench {

struct CaseSettings {
  std::string kernel;  // a case, or kCopy
  int64_t rows = 0, cols = 0;
  DType dtype = DType::f32;
  Device device = {};
  std::string provider = {};  // own, library, ...; empty: as it is set
};

// A copy by the runtime (cudaMemcpyAsync between two arrays of the device) that reads and writes
// rows x cols elements each. On the CPU it is the kernel cast_from_f32, which uses all threads.
inline constexpr const char* kCopy = "memcpy";

Prepared prepare(const CaseSettings& settings);
// The copy of as many bytes, read and written, as the case moves.
Prepared copy_of_bytes(double bytes, Device device);

DType parse_floating(const std::string& name, const char* flag);

// A sample is so many calls between two waits for the device that the clock's resolution does not
// matter: 5 ms or more.
class Timer {
 public:
  // Runs the case once to warm up caches, pages and the first launch, then finds how many calls a
  // sample needs. REQUIRES: `work` outlives the timer.
  Timer(const Prepared& work, Device device);
  double sample();       // seconds per call
  double sample_once();  // of one call
  int calls() const { return calls_; }

 private:
  const Prepared& work_;
  Device device_;
  int calls_ = 1;
};

// One case against a copy, in turn.
struct Measured {
  double seconds = 0, spread = 0, share_of_copy = 0;
  double bytes = 0, flops = 0;
};
Measured measure(const CaseSettings& settings, int samples);
std::string json_of(const CaseSettings& settings, const Measured& measured);

}  // namespace binade::bench
