// HostSyncGuard: finds where a program waits for the device unintentionally.
//
//   HostSyncGuard guard(HostSyncGuard::record);
//   train_step();
//   for (const HostSync& sync : guard.found()) std::puts(to_string(sync).c_str());
//
// While the guard exists it counts, on this thread: item() and at(), copies to pageable memory or
// of more than 1 MiB from it, synchronize(), and empty_cache(). Each comes with the line of the
// call if known, the module, and the op in backward. On the CPU nothing waits, so it finds nothing.
#pragma once
#include <binade/core/device/memory.h>
#include <binade/core/observe/timeline.h>
#include <binade/core/tensor/source_line.h>
#include <binade/kernels/base/device.h>

#include <string>
#include <utility>
#include <vector>

namespace binade {

struct HostSync {
  std::string what = {};    // "item", "copy to the cpu", ...
  std::string module = {};  // path; empty outside of modules
  std::string op = {};      // whose backward or kernel waits, if known
  std::string file = {};    // of the call, if known
  uint32_t line = 0;
  Device device = {};
  int64_t count = 0;
  bool same_place(const HostSync& other) const;
};
// "item on cuda:0, 3 times, train.cpp:40 (in module head)"
std::string to_string(const HostSync& sync);

class HostSyncGuard {
 public:
  enum Mode : uint8_t { record, raise };  // raise: an Error before the wait

  explicit HostSyncGuard(Mode mode = raise)
      : mode_(mode), outer_(std::exchange(detail::thread_state.syncs, this)) {}
  ~HostSyncGuard() { detail::thread_state.syncs = outer_; }
  HostSyncGuard(const HostSyncGuard&) = delete;
  HostSyncGuard& operator=(const HostSyncGuard&) = delete;

  const std::vector<HostSync>& found() const { return found_; }
  int64_t count() const;

  void note(HostSync sync);  // for the runtime

 private:
  Mode mode_;
  HostSyncGuard* outer_;
  std::vector<HostSync> found_;
};

// While one exists the program waits on purpose: guards made earlier do not count these waits.
class AllowHostSyncGuard {
 public:
  AllowHostSyncGuard() : before_(std::exchange(detail::thread_state.syncs, nullptr)) {}
  ~AllowHostSyncGuard() { detail::thread_state.syncs = before_; }
  AllowHostSyncGuard(const AllowHostSyncGuard&) = delete;
  AllowHostSyncGuard& operator=(const AllowHostSyncGuard&) = delete;

 private:
  HostSyncGuard* before_;
};

namespace detail {

void note_host_sync_slow(const char* what, Device device);
// Call it before the host waits for the device.
inline void note_host_sync(const char* what, Device device) {
  if (thread_state.syncs || timeline_has(Activity::device)) [[unlikely]] {
    note_host_sync_slow(what, device);
  }
}

// The user's call that is about to wait, for the notes that the runtime makes meanwhile.
class HostSyncCall {
 public:
  HostSyncCall(const char* what, SourceLine where)
      : what_(what), where_(where), outer_(std::exchange(current(), this)) {}
  ~HostSyncCall() {
    current() = outer_;
    if (since_ != 0) [[unlikely]] {
      end_wait();
    }
  }
  HostSyncCall(const HostSyncCall&) = delete;
  HostSyncCall& operator=(const HostSyncCall&) = delete;

  static const HostSyncCall*& current();
  const char* what() const { return what_; }
  SourceLine where() const { return where_; }
  void begin_wait() const { since_ = since_ != 0 ? since_ : timeline_now(); }

 private:
  void end_wait() const noexcept;  // adds the wait to the timeline

  const char* what_;
  SourceLine where_;
  const HostSyncCall* outer_;
  mutable int64_t since_ = 0;  // the begin of a wait that the timeline shall have
};

}  // namespace detail
}  // namespace binade
