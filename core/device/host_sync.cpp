#include <binade/core/autograd/backward_run_internal.h>
#include <binade/core/device/host_sync.h>
#include <binade/core/observe/label.h>
#include <binade/kernels/base/kernel.h>

#include <algorithm>

namespace binade {

bool HostSync::same_place(const HostSync& other) const {
  return what == other.what && module == other.module && op == other.op && file == other.file &&
         line == other.line && device == other.device;
}

std::string to_string(const HostSync& sync) {
  std::string out = text(sync.what, " on ", sync.device);
  if (sync.count > 1) {
    out += text(", ", sync.count, " times");
  }
  if (!sync.file.empty()) {
    out += text(", ", sync.file, ":", sync.line);
  }
  if (!sync.op.empty()) {
    out += " " + sync.op;
  }
  return sync.module.empty() ? out : out + " (in module " + sync.module + ")";
}

int64_t HostSyncGuard::count() const {
  int64_t all = 0;
  for (const HostSync& sync : found_) {
    all += sync.count;
  }
  return all;
}

void HostSyncGuard::note(HostSync sync) {
  check(mode_ == record, "host sync: the host would wait for the device in ", to_string(sync),
        "; keep the value on the device, read it later, or allow it with AllowHostSyncGuard");
  const auto known = std::find_if(found_.begin(), found_.end(),
                                  [&](const HostSync& other) { return other.same_place(sync); });
  if (known == found_.end()) {
    found_.push_back(std::move(sync));
  } else {
    ++known->count;
  }
}

namespace detail {

constinit thread_local const HostSyncCall* current_call = nullptr;

const HostSyncCall*& HostSyncCall::current() { return current_call; }

void HostSyncCall::end_wait() const noexcept {
  const char* note = nullptr;
  try {
    note = where_.line > 0 ? timeline_text(text(where_.file, ":", where_.line)) : nullptr;
  } catch (const std::exception&) {
    note = nullptr;  // no memory: the event has no line
  }
  timeline_add({.kind = TimelineEvent::wait,
                .name = what_,
                .in_phase = timeline_phase(),
                .note = note,
                .label = thread_state.label,
                .begin = since_,
                .end = timeline_now()});
}

void note_host_sync_slow(const char* what, Device device) {
  if (const HostSyncCall* call = HostSyncCall::current(); call && timeline_has(Activity::device)) {
    call->begin_wait();
  }
  if (!thread_state.syncs) {
    return;
  }
  HostSync sync{.what = what, .device = device, .count = 1};
  uint32_t label = thread_state.label;
  const BackwardRun* run = thread_state.run;
  if (run && run->current()) {
    label = run->current()->label;
    sync.op = text("in backward of ", run->current()->name());
  }
#ifdef BINADE_WITH_CUDA
  if (const auto* call = kernels::KernelCall::current(); call && sync.op.empty()) {
    sync.op = text("in ", call->name());
  }
#endif
  sync.module = label_text(label);
  if (const HostSyncCall* call = HostSyncCall::current()) {
    sync.what = call->what();
    sync.file = call->where().file;
    sync.line = call->where().line;
  }
  thread_state.syncs->note(std::move(sync));
}

}  // namespace detail
}  // namespace binade
