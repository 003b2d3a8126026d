#include <binade/core/observe/call_stack_internal.h>
#include <binade/kernels/base/error.h>
#include <unwind.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace binade::detail {
namespace {

using kernels::SourceFrame;
using kernels::SourceFrames;

constexpr size_t kMostFrames = 64;       // of a stack; outer ones are left out
constexpr size_t kMostStacks = 100'000;  // that are kept

struct Addresses {
  const void* at[kMostFrames];
  uintptr_t frames[kMostFrames];  // canonical frame addresses (CFA) of the callees
  size_t count = 0;
};

// A return address is behind the call: one byte before it belongs to the line of the call.
_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* addresses) {
  auto& all = *static_cast<Addresses*>(addresses);
  const auto at = static_cast<uintptr_t>(_Unwind_GetIP(context));
  if (at != 0) {
    all.at[all.count] = reinterpret_cast<const void*>(at - 1);
    all.frames[all.count++] = _Unwind_GetCFA(context);
  }
  return all.count < kMostFrames ? _URC_NO_REASON : _URC_END_OF_STACK;
}

struct CallStack {
  std::vector<const void*> addresses = {};
  std::string line = {};
};

struct CallStacks {
  std::mutex mutex;
  std::unordered_map<uint64_t, uint32_t> numbers;  // by hash; from 1 on
  std::vector<CallStack> all;
  size_t known = 0;  // the first of `all`, whose lines were looked up
  std::map<const void*, SourceFrames> frames;
};
CallStacks& call_stacks() {  // never destroyed: threads may end after main
  static auto* instance = new CallStacks;
  return *instance;
}

uint64_t stack_hash(const Addresses& stack) {  // FNV-1a
  uint64_t hash = 0xCBF29CE484222325U;
  for (size_t i = 0; i < stack.count; ++i) {
    hash = (hash ^ reinterpret_cast<uintptr_t>(stack.at[i])) * 0x100000001B3U;
  }
  return hash;
}

constexpr std::string_view kLayers[] = {"kernels/", "core/", "nn/",    "optim/",
                                        "data/",    "dist/", "train/", "lab/"};

bool is_engine_file(std::string_view path) {  // relative to the root
  constexpr std::string_view kModels[] = {"nn/models.", "nn/resnet.", "nn/gpt2."};
  const auto begins = [path](std::string_view with) { return path.starts_with(with); };
  return std::ranges::any_of(kLayers, begins) && !std::ranges::any_of(kModels, begins);
}

// The part of a path below the folder of the engine's sources or headers; empty if it is elsewhere.
std::string_view below_root(std::string_view path, const std::string& root) {
  constexpr std::string_view kHeaders = "/include/binade/";
  if (!root.empty() && path.starts_with(root)) {
    const std::string_view rest = path.substr(root.size());
    const size_t at = rest.find(kHeaders.substr(1));  // of a build folder in the root
    return at == rest.npos ? rest : rest.substr(at + kHeaders.size() - 1);
  }
  const size_t at = path.rfind(kHeaders);
  return at == path.npos ? "" : path.substr(at + kHeaders.size());
}

// An object from a compiler cache can name the folder of another build.
bool is_engine_elsewhere(std::string_view path) {
  for (size_t at = path.find('/'); at != path.npos; at = path.find('/', at + 1)) {
    if (is_engine_file(path.substr(at + 1)) && !path.substr(0, at).ends_with("/tests")) {
      return true;
    }
  }
  return false;
}

// True if the function that the instruction is in has a name of the engine. Of the functions that
// were inlined into it, small debug information knows no namespace.
bool has_engine_name(const SourceFrames& call) {
  return std::ranges::any_of(
      call.frames, [](const SourceFrame& frame) { return frame.function.starts_with("binade::"); });
}

bool is_of_program(const SourceFrame& frame, const SourceFrames& call, const std::string& root) {
  const std::string& function = frame.function;
  const auto starts = [&](const char* with) { return function.starts_with(with); };
  if (starts("std::") || starts("__gnu_cxx::") || starts("__libc_") || function == "_start" ||
      frame.file.starts_with("/usr/include/") ||
      frame.file.find("/include/c++/") != frame.file.npos) {
    return false;
  }
  if (frame.line == 0) {  // the result of a template stands before its name
    const std::string name = function.substr(0, function.find('('));
    return !function.empty() && !starts("binade::") && name.find(" binade::") == name.npos &&
           name.find(" std::") == name.npos;
  }
  return !is_engine_file(below_root(frame.file, root)) &&
         !(has_engine_name(call) && is_engine_elsewhere(frame.file));
}

// "Net::forward(Tensor const&) const" without its parameters.
std::string without_parameters(std::string function) {
  if (const size_t end = function.rfind(')'); end != function.npos) {
    size_t at = end;
    for (int depth = 0; at != 0; --at) {
      depth += function[at] == ')' ? 1 : function[at] == '(' ? -1 : 0;
      if (depth == 0) {
        break;
      }
    }
    if (at > 0) {
      function.resize(at);
    }
  }
  return function;
}

std::string normal_path(const std::string& path) {
  return path.empty() ? path : std::filesystem::path(path).lexically_normal().string();
}

// The folder of the engine's sources, as its debug information names it: that of this file, which
// every stack begins with.
std::string root_of(const CallStacks& stacks) {
  constexpr std::string_view kThis = "core/observe/call_stack.cpp";
  for (const auto& [address, calls] : stacks.frames) {
    for (const SourceFrame& frame : calls.frames) {
      if (frame.file.ends_with(kThis)) {
        return frame.file.substr(0, frame.file.size() - kThis.size());
      }
    }
  }
  return "";
}

void look_up_new(CallStacks& stacks) {
  std::vector<const void*> unknown;
  for (size_t i = stacks.known; i < stacks.all.size(); ++i) {
    for (const void* address : stacks.all[i].addresses) {
      if (stacks.frames.try_emplace(address).second) {
        unknown.push_back(address);
      }
    }
  }
  std::vector<SourceFrames> found = kernels::source_frames(unknown);
  for (size_t i = 0; i < unknown.size(); ++i) {
    for (SourceFrame& frame : found[i].frames) {
      frame.file = normal_path(frame.file);
    }
    stacks.frames[unknown[i]] = std::move(found[i]);
  }
  const std::string root = root_of(stacks);
  for (; stacks.known < stacks.all.size(); ++stacks.known) {
    std::vector<const SourceFrames*> calls;
    for (const void* address : stacks.all[stacks.known].addresses) {
      calls.push_back(&stacks.frames[address]);
    }
    stacks.all[stacks.known].line = line_of_calls(calls, root);
  }
}

// Stacks of this thread that were unwound, which takes some 10 us. On x86-64 a return address lies
// below the frame of its caller. If all of them lie where they lay, from the innermost on, the
// stack is the same: where the next one lies depends on the instruction and the frame before it.
struct ReturnAddress {
  const uintptr_t* place;
  uintptr_t value;
};
struct UnwoundStack {
  std::vector<ReturnAddress> addresses;
  uint32_t number = 0;
};
constexpr size_t kWays = 32;  // of stacks whose innermost frame has one address
struct UnwoundStacks {
  std::vector<UnwoundStack> stacks;
  size_t next = 0;  // to be replaced
};
constexpr size_t kMostInnermost = 4096;
using UnwoundCache = std::unordered_map<const void*, UnwoundStacks>;  // by the innermost frame

#ifdef __x86_64__
// Instrumented code may not look at the stack of its callers.
__attribute__((no_sanitize("address", "thread"))) bool is_current(const UnwoundStack& stack) {
  for (const auto& [place, value] : stack.addresses) {
    if (*static_cast<const volatile uintptr_t*>(place) != value) {
      return false;
    }
  }
  return true;
}

UnwoundCache& unwound_cache() {
  thread_local UnwoundCache cache;
  return cache;
}

// The number of the current stack, or 0 if it is to be unwound.
uint32_t known_stack(const void* innermost) {
  const auto found = unwound_cache().find(innermost);
  if (found != unwound_cache().end()) {
    for (const UnwoundStack& stack : found->second.stacks) {
      if (is_current(stack)) {
        return stack.number;
      }
    }
  }
  return 0;
}

void keep_stack(const void* innermost, const Addresses& stack, uint32_t number) {
  UnwoundStack kept{{}, number};
  for (size_t i = 1; i < stack.count; ++i) {  // the first is that of the unwinder
    kept.addresses.push_back(
        {reinterpret_cast<const uintptr_t*>(stack.frames[i] - sizeof(uintptr_t)),
         reinterpret_cast<uintptr_t>(stack.at[i]) + 1});
  }
  if (!is_current(kept)) {  // a frame of another kind, such as that of a signal
    return;
  }
  UnwoundCache& cache = unwound_cache();
  if (cache.size() >= kMostInnermost && !cache.contains(innermost)) {
    cache.clear();
  }
  UnwoundStacks& all = cache[innermost];
  if (all.stacks.size() < kWays) {
    all.stacks.push_back(std::move(kept));
  } else {
    all.stacks[all.next++ % kWays] = std::move(kept);
  }
}
#else
uint32_t known_stack(const void*) { return 0; }
void keep_stack(const void*, const Addresses&, uint32_t) {}
#endif

// The number of a stack, the same for equal ones; 0 if there are too many.
uint32_t number_of(const Addresses& stack) {
  CallStacks& stacks = call_stacks();
  const std::lock_guard lock(stacks.mutex);
  // If two stacks had the same hash, which does not happen, the later one takes the next hash.
  for (uint64_t hash = stack_hash(stack);; ++hash) {
    const auto found = stacks.numbers.find(hash);
    if (found == stacks.numbers.end()) {
      if (stacks.all.size() >= kMostStacks) {
        return 0;
      }
      stacks.all.push_back({std::vector<const void*>(stack.at, stack.at + stack.count)});
      const auto number = static_cast<uint32_t>(stacks.all.size());
      stacks.numbers.emplace(hash, number);
      return number;
    }
    if (std::ranges::equal(stacks.all[found->second - 1].addresses,
                           std::span(stack.at, stack.count))) {
      return found->second;
    }
  }
}

}  // namespace

uint32_t record_call_stack() noexcept {
  const void* innermost = __builtin_frame_address(0);
  try {
    if (const uint32_t number = known_stack(innermost)) {
      return number;
    }
    Addresses stack;
    _Unwind_Backtrace(add_frame, &stack);
    const uint32_t number = number_of(stack);
    if (number != 0) {
      keep_stack(innermost, stack, number);
    }
    return number;
  } catch (const std::exception&) {  // no memory
    return 0;
  }
}

std::string call_line(uint32_t stack) {
  CallStacks& stacks = call_stacks();
  const std::lock_guard lock(stacks.mutex);
  if (stack == 0 || stack > stacks.all.size()) {
    return "";
  }
  if (stack > stacks.known) {
    look_up_new(stacks);
  }
  return stacks.all[stack - 1].line;
}

std::string line_of_calls(std::span<const SourceFrames* const> calls, const std::string& root) {
  for (const SourceFrames* call : calls) {
    for (const SourceFrame& frame : call->frames) {
      if (!is_of_program(frame, *call, root)) {
        continue;
      }
      if (frame.line > 0) {
        return text(frame.file, ":", frame.line);
      }
      char address[24];
      std::snprintf(address, sizeof address, "%zx", call->address);
      return text(without_parameters(frame.function), " (",
                  std::filesystem::path(call->program).filename().string(), "+0x", address, ")");
    }
  }
  return "";
}

}  // namespace binade::detail
