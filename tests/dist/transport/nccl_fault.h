// The fault that a test plants in the fake NCCL.
//
// FAKE_NCCL_FAULT=KIND:RANK:K plants a fault at the K-th call of that rank's thread: "error" (the
// call fails), "hang" (it never returns), "async" (it succeeds and the communicator fails), "abort"
// (the same, and then neither ncclCommAbort nor ncclCommDestroy returns), "progress" (it stays in
// progress for ever).
#pragma once
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace testing {

struct NcclFault {
  std::string kind;  // empty: no fault
  int rank = 0, call = 0;
};

inline const NcclFault& nccl_fault() {
  static const NcclFault planted = [] {
    NcclFault fault;
    char kind[16] = "";
    const char* text = std::getenv("FAKE_NCCL_FAULT");
    if (text != nullptr &&
        std::sscanf(text, "%15[a-z]:%d:%d", kind, &fault.rank, &fault.call) == 3) {
      fault.kind = kind;
    }
    return fault;
  }();
  return planted;
}

[[noreturn]] inline void hang() {
  for (;;) {
    ::pause();
  }
}

inline std::atomic<bool> abort_hangs{false};

inline void set_abort_hangs(bool hangs) { abort_hangs = abort_hangs || hangs; }
inline void hang_in_abort() {
  if (abort_hangs) {
    hang();
  }
}

}  // namespace testing
