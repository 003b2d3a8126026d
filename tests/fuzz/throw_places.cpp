// In the coverage build alone: the calls that led to every throw, as addresses in the program, one
// throw a line, in the file that BINADE_FUZZ_THROWN names. .ci/fuzz-coverage finds their lines.
#include <execinfo.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <typeinfo>
#include <vector>

extern "C" {
extern const char __executable_start;
[[noreturn]] void __real___cxa_throw(void*, std::type_info*, void (*)(void*));

[[noreturn]] void __wrap___cxa_throw(void* thrown, std::type_info* type, void (*destroy)(void*)) {
  static std::FILE* const file = [] {
    const char* path = std::getenv("BINADE_FUZZ_THROWN");
    return path ? std::fopen(path, "w") : nullptr;
  }();
  static std::set<std::vector<uintptr_t>> seen;
  constexpr int kFrames = 8;
  void* frames[kFrames];
  const int count = ::backtrace(frames, kFrames);
  std::vector<uintptr_t> calls;
  for (int i = 1; i < count; ++i) {  // the call is before the address that it returns to
    calls.push_back(reinterpret_cast<uintptr_t>(frames[i]) - 1 -
                    reinterpret_cast<uintptr_t>(&__executable_start));
  }
  if (file && seen.insert(calls).second) {
    for (const uintptr_t call : calls) {
      std::fprintf(file, "%#jx ", static_cast<uintmax_t>(call));
    }
    std::fputc('\n', file);
    std::fflush(file);
  }
  __real___cxa_throw(thrown, type, destroy);
}
}
