#include <binade/kernels/base/error.h>
#include <binade/kernels/host/source_line.h>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstdio>
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

// "file:line" of each frame, innermost first.
std::vector<std::string> frames(const void* instruction) {
  std::vector<std::string> lines;
  Dl_info file;
  if (dladdr(instruction, &file) == 0 || file.dli_fbase == nullptr) {
    return lines;
  }
  char command[4200];
  std::snprintf(command, sizeof command, "addr2line -ie '%s' %zx 2>/dev/null", file.dli_fname,
                static_cast<size_t>(file_address(file, instruction)));
  FILE* output = popen(command, "r");
  if (output == nullptr) {
    return lines;
  }
  char buffer[4200];
  while (std::fgets(buffer, sizeof buffer, output) != nullptr) {
    std::string line = buffer;
    line.resize(std::min(line.find('\n'), line.find(" (discriminator")));
    if (line.rfind("??", 0) != 0) {
      lines.push_back(std::move(line));
    }
  }
  pclose(output);
  return lines;
}

SourceLine look_up(const void* instruction) {
  SourceLine found{"?", "?"};
  const std::vector<std::string> lines = frames(instruction);
  if (!lines.empty()) {
    found.inner = found.kernel = lines.front();
  }
  for (const std::string& line : lines) {
    if (line.find(".cu:") != std::string::npos) {
      found.kernel = line;
    }
  }
  return found;
}

}  // namespace

const SourceLine& source_line(const void* instruction) {
  static auto& cache = *new std::unordered_map<const void*, SourceLine>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const auto found = cache.find(instruction);
  return found != cache.end() ? found->second
                              : cache.emplace(instruction, look_up(instruction)).first->second;
}

}  // namespace binade::kernels::host
