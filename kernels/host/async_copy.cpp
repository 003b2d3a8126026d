// cp.async: the destination is poisoned when a copy is issued, and written when its thread waits
// for it (late) or at once (early). Until then the race detector treats the bytes as in flight.
#include <binade/kernels/host/executor_internal.h>
#include <binade/kernels/host/race.h>

#include <cstring>

namespace binade::kernels::host {
namespace {

constexpr size_t kBytes = 16;

void land(const AsyncCopy& copy) {
  std::memset(copy.shared, 0, kBytes);
  std::memcpy(copy.shared, copy.global, static_cast<size_t>(copy.bytes));
}

}  // namespace

void copy_async(void* shared, const void* global, int source_bytes, Site site) {
  Executor& x = executor();
  if (!in_shared(x, shared, kBytes)) {
    fail_thread({FindingKind::out_of_bounds, site}, "cp.async at ", site,
                ": destination outside of shared memory");
  }
  if (reinterpret_cast<uintptr_t>(shared) % kBytes != 0) {
    fail_thread({FindingKind::misaligned, site}, "cp.async at ", site,
                ": destination is not a multiple of 16");
  }
  if (reinterpret_cast<uintptr_t>(global) % kBytes != 0) {
    fail_thread({FindingKind::misaligned, site}, "cp.async at ", site,
                ": source is not a multiple of 16");
  }
  if (source_bytes < 0 || source_bytes > static_cast<int>(kBytes)) {
    fail_thread({FindingKind::bad_argument, site}, "cp.async at ", site, ": ", source_bytes,
                " bytes of source; expected 0 to 16");
  }
  check_address(global, static_cast<size_t>(source_bytes), "cp.async source", site);
  race::access(x, {global, static_cast<size_t>(source_bytes), race::Kind::read, x.current}, site);
  race::access(x, {shared, kBytes, race::Kind::copy_issued, x.current}, site);
  Thread& self = current_thread(x);
  self.copies.push_back({shared, global, source_bytes, self.committed_groups, site});
  if (x.options.late_async) {
    std::memset(shared, 0xff, kBytes);
  } else {
    land(self.copies.back());
  }
}

void commit_async() { ++current_thread(executor()).committed_groups; }

void wait_async(int pending_groups) {
  Executor& x = executor();
  Thread& self = current_thread(x);
  const int landed_groups = self.committed_groups - pending_groups;
  auto copy = self.copies.begin();
  for (; copy != self.copies.end() && copy->group < landed_groups; ++copy) {
    race::access(x, {copy->shared, kBytes, race::Kind::copy_landed, x.current}, copy->site);
    if (x.options.late_async) {
      land(*copy);
    }
  }
  self.copies.erase(self.copies.begin(), copy);
}

}  // namespace binade::kernels::host
