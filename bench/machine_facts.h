// What a measurement must say of the machine, and the ceilings of the machine that it is compared
// with.
#pragma once
#include <binade/kernels/base/device.h>
#include <binade/kernels/base/dtype.h>

#include <cstdint>
#include <memory>
#include <string>

namespace binade::bench {

struct MachineFacts {
  std::string commit, build, compiler;  // of Binade
  std::string cpu, kernel, governor, isa, device;
  int cores = 0, threads = 0;
  double megahertz = 0;    // of the first core, now; 0: not known
  int64_t last_cache = 0;  // bytes of the last level cache
  double load = 0;         // of the last minute
  std::string date;        // UTC
};
MachineFacts machine_facts(Device device);

// Empties the caches of a device: writes more memory than they hold.
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

// The largest FLOP/s that this program reaches: on the CPU multiply-adds in registers, by the
// widest vectors and all threads; on a GPU a large product of our own or the vendor's.
double measured_flops(DType dtype, Device device);
// Bytes per second, read and written, of a copy of so many bytes; with a flush, from empty caches.
double measured_copy(double bytes, Device device, CacheFlush* flush);

}  // namespace binade::bench
