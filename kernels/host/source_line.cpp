#include <binade/kernels/base/error.h>
#include <binade/kernels/host/source_line.h>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace binade::kernels::host {
namespace {

// The address of the instruction within its file.
uintptr_t file_address(const Dl_info& file, const void* instruction) {
  const auto address = reinterpret_cast<uintptr_t>(instruction);
  const bool fixed = static_cast<const ElfW(Ehdr)*>(file.dli_fbase)->e_type == ET_EXEC;
  return fixed ? address : address - reinterpret_cast<uintptr_t>(file.dli_fbase);
}

// One frame of addr2line's output: "file:line".
struct Frame {
  std::string file;
  int line;
};

FindingLine line_of_frames(const std::vector<Frame>& frames) {
  FindingLine found;
  if (frames.empty()) {
    return found;
  }
  // The outermost frame in a kernel source; frames come innermost first.
  const Frame* kernel = &frames.front();
  for (const Frame& frame : frames) {
    if (frame.file.ends_with(".cu")) {
      kernel = &frame;
    }
  }
  found.file = kernel->file;
  found.line = kernel->line;
  if (kernel != &frames.front()) {
    found.inner_file = frames.front().file;
    found.inner_line = frames.front().line;
  }
  return found;
}

struct LineCache {
  std::mutex mutex;
  std::unordered_map<const void*, FindingLine> lines;
};
LineCache& line_cache() {
  static auto& cache = *new LineCache;
  return cache;
}

// Asks addr2line about instructions of one file. With -a it prints each address before its frames.
void look_up_in(LineCache& cache, const Dl_info& file,
                const std::vector<const void*>& instructions) {
  std::string command = text("addr2line -aie '", file.dli_fname, "'");
  for (const void* instruction : instructions) {
    char address[24];
    std::snprintf(address, sizeof address, " %zx",
                  static_cast<size_t>(file_address(file, instruction)));
    command += address;
  }
  FILE* output = popen((command + " 2>/dev/null").c_str(), "r");
  if (output == nullptr) {
    return;
  }
  char buffer[4200];
  size_t next = 0;  // instruction
  std::vector<Frame> frames;
  const auto finish = [&] {
    if (next > 0 && next <= instructions.size()) {
      cache.lines[instructions[next - 1]] = line_of_frames(frames);
    }
    frames.clear();
  };
  while (std::fgets(buffer, sizeof buffer, output) != nullptr) {
    const std::string_view line = buffer;
    if (line.starts_with("0x")) {
      finish();
      ++next;
      continue;
    }
    const size_t colon = line.rfind(':');
    const int number = colon == line.npos ? 0 : std::atoi(buffer + colon + 1);
    if (number > 0 && !line.starts_with("??")) {
      frames.push_back({std::string(line.substr(0, colon)), number});
    }
  }
  finish();
  pclose(output);
}

}  // namespace

void look_up_lines(const std::vector<const void*>& instructions) {
  constexpr size_t kAtOnce = 1000;  // of a command line
  LineCache& cache = line_cache();
  const std::lock_guard lock(cache.mutex);
  std::map<const void*, std::pair<Dl_info, std::vector<const void*>>> files;
  for (const void* instruction : instructions) {
    Dl_info file;
    if (!cache.lines.emplace(instruction, FindingLine{}).second) {
      continue;
    }
    if (dladdr(instruction, &file) != 0 && file.dli_fbase != nullptr) {
      auto& [info, those] = files[file.dli_fbase];
      info = file;
      those.push_back(instruction);
    }
  }
  for (const auto& [base, file] : files) {
    const auto& [info, those] = file;
    for (size_t i = 0; i < those.size(); i += kAtOnce) {
      const auto begin = those.begin() + static_cast<ptrdiff_t>(i);
      const auto count = static_cast<ptrdiff_t>(std::min(kAtOnce, those.size() - i));
      look_up_in(cache, info, {begin, begin + count});
    }
  }
}

const FindingLine& source_line(const void* instruction) {
  look_up_lines({instruction});
  const std::lock_guard lock(line_cache().mutex);
  return line_cache().lines[instruction];
}

}  // namespace binade::kernels::host
