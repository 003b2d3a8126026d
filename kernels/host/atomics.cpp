// Atomics. They are real ones, because blocks may run on several OS threads.
#include <binade/kernels/host/executor_internal.h>
#include <binade/kernels/host/race.h>

namespace binade::kernels::host {
namespace {

// Replaces *p by f(*p); returns the old value. Bits is the unsigned integer of T's size.
template <class Bits, class T, class F>
T read_modify_write(T* p, Site site, F f) {
  static_assert(sizeof(T) == sizeof(Bits));
  Executor& x = executor();
  if (reinterpret_cast<uintptr_t>(p) % sizeof(T) != 0) {
    fail_thread({FindingKind::misaligned, site}, "atomic at ", site,
                ": the address is not a multiple of ", sizeof(T));
  }
  note_poll(x, site);
  check_address(p, sizeof(T), "atomic", site);
  race::access(x, {p, sizeof(T), race::Kind::atomic, x.current}, site);
  race::atomic_order(x, p);
  auto* target = reinterpret_cast<Bits*>(p);
  Bits old = __atomic_load_n(target, __ATOMIC_RELAXED), desired;
  do {
    desired = std::bit_cast<Bits>(f(std::bit_cast<T>(old)));
  } while (!__atomic_compare_exchange_n(target, &old, desired, true, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED));
  return std::bit_cast<T>(old);
}

}  // namespace

float atomic_add(float* p, float value, Site site) {
  return read_modify_write<uint32_t>(p, site, [=](float old) { return old + value; });
}
double atomic_add(double* p, double value, Site site) {
  return read_modify_write<uint64_t>(p, site, [=](double old) { return old + value; });
}
int atomic_add(int* p, int value, Site site) {
  return read_modify_write<uint32_t>(p, site, [=](int old) {
    return static_cast<int>(static_cast<unsigned>(old) + static_cast<unsigned>(value));
  });
}
unsigned atomic_add(unsigned* p, unsigned value, Site site) {
  return read_modify_write<uint32_t>(p, site, [=](unsigned old) { return old + value; });
}
unsigned long long atomic_add(unsigned long long* p, unsigned long long value, Site site) {
  return read_modify_write<uint64_t>(p, site, [=](unsigned long long old) { return old + value; });
}
unsigned atomic_max(unsigned* p, unsigned value, Site site) {
  return read_modify_write<uint32_t>(p, site, [=](unsigned old) { return std::max(old, value); });
}
unsigned long long atomic_max(unsigned long long* p, unsigned long long value, Site site) {
  return read_modify_write<uint64_t>(p, site,
                                     [=](unsigned long long old) { return std::max(old, value); });
}
unsigned atomic_or(unsigned* p, unsigned value, Site site) {
  return read_modify_write<uint32_t>(p, site, [=](unsigned old) { return old | value; });
}
unsigned atomic_cas(unsigned* p, unsigned expected, unsigned value, Site site) {
  return read_modify_write<uint32_t>(p, site,
                                     [=](unsigned old) { return old == expected ? value : old; });
}
int atomic_cas(int* p, int expected, int value, Site site) {
  return read_modify_write<uint32_t>(p, site,
                                     [=](int old) { return old == expected ? value : old; });
}

void thread_fence() { race::fence(executor()); }

}  // namespace binade::kernels::host
