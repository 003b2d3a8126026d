// The wall clock jumps a day forwards or ten years back whenever it is read; the monotonic clock
// does not.
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

#include <atomic>

namespace {

std::atomic<unsigned> looks{0};

time_t jumped(time_t seconds) {
  constexpr time_t kDay = 24 * 3600, kTenYears = 3653 * kDay;
  return seconds + (looks++ % 2 == 0 ? kDay : -kTenYears);
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  using Function = int (*)(clockid_t, timespec*);
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "clock_gettime"));
  const int status = next(clock, now);
  if (clock == CLOCK_REALTIME) {
    now->tv_sec = jumped(now->tv_sec);
  }
  return status;
}

int gettimeofday(timeval* __restrict now, void* __restrict) noexcept {
  timespec precise{};
  const int status = clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return status;
}

time_t time(time_t* to) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (to != nullptr) {
    *to = now.tv_sec;
  }
  return now.tv_sec;
}

}  // extern "C"
