// Times of kernel calls and graph replays on devices, measured by events of their streams, so that
// the host never waits. Work that a graph captures has no times of its own: the replay has one.
#pragma once
#include <binade/kernels/base/device.h>

#include <atomic>
#include <cstdint>
#include <vector>

namespace binade::kernels {

struct KernelTime {
  const char* name = "";
  Device device = {};
  void* stream = nullptr;
  int64_t begin = 0, end = 0;  // nanoseconds of the steady clock
};

void set_kernel_times(bool on);
// The times since the last call. Waits for the devices. `dropped`: calls that were not timed.
std::vector<KernelTime> take_kernel_times(int64_t& dropped);

namespace detail {
extern std::atomic<bool> kernel_times;
}
inline bool times_kernels() { return detail::kernel_times.load(std::memory_order_relaxed); }
// null if the work cannot be timed: a stream is captured, or the runtime has no event.
void* begin_kernel_time(Device device) noexcept;
void end_kernel_time(const char* name, Device device, void* begun) noexcept;

}  // namespace binade::kernels
