// The facts about a machine that belong to a measurement, and the machine's measured ceilings.
#pragma once
#include <binade/kernels/base/device.h>
#include <binade/kernels/base/dtype.h>

#include <cstdint>
#include <memory>
#include <string>

namespace binade::bench {

struct MachineFacts {
  std::string commit, build, compiler;  // of this build of Binade
  std::string cpu, kernel, governor, isa, device;
  int cores = 0, threads = 0;
  double megahertz = 0;    // current, of the first core; 0: unknown
  int64_t last_cache = 0;  // size of the last-level cache
  double load = 0;         // load average of one minute
  std::string date;        // UTC
};
MachineFacts machine_facts(Device device);

// Empties the caches of a device by writing more memory than they hold.
class CacheFlush {
 public:
  explicit CacheFlush(Device device);
  void run();
  int64_t bytes() const { return bytes_; }

 private:
  struct Buffer;
  Device device_;
  int64_t bytes_;
  std::shared_ptr<Buffer> buffer_;
};

// The largest FLOP/s that this program reaches: on the CPU with multiply-adds in the widest vector
// registers on all threads; on a GPU with a large product of our own or the vendor's kernel.
double measured_flops(DType dtype, Device device);
// Bytes per second, read and written, of a copy of that size; with a flush, from empty caches.
double measured_copy(double bytes, Device device, CacheFlush* flush);

}  // namespace binade::bench
