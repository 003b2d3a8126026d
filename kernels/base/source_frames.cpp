#include <binade/kernels/base/error.h>
#include <binade/kernels/base/source_frames.h>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string_view>

namespace binade::kernels {
namespace {

// The address of the instruction within its file.
size_t file_address(const Dl_info& file, const void* instruction) {
  const auto address = reinterpret_cast<uintptr_t>(instruction);
  const bool fixed = static_cast<const ElfW(Ehdr)*>(file.dli_fbase)->e_type == ET_EXEC;
  return fixed ? address : address - reinterpret_cast<uintptr_t>(file.dli_fbase);
}

// The path of a program or library. The loader knows the program by the word that it was started
// by.
std::string path_of(const Dl_info& file) {
  const std::string_view name = file.dli_fname;
  if (name.find('/') != name.npos && ::access(file.dli_fname, R_OK) == 0) {
    return file.dli_fname;
  }
  char path[4096];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  return size > 0 && static_cast<size_t>(size) < sizeof path
             ? std::string(path, static_cast<size_t>(size))
             : file.dli_fname;
}

// "file:line" or "file:line (discriminator 2)". Returns 0 for "??:0" and "file:?".
int line_number(std::string_view line, size_t& colon) {
  colon = line.rfind(':');
  return colon == line.npos || line.starts_with("??") ? 0 : std::atoi(line.data() + colon + 1);
}

// Asks addr2line about the instructions of one file. With -a it prints each address before its
// frames, and a frame is two lines: the function, then file and line.
void ask_addr2line(const std::string& file, const std::vector<SourceFrames*>& those) {
  std::string command = text("addr2line -aCfie '", file, "'");
  for (const SourceFrames* one : those) {
    char address[24];
    std::snprintf(address, sizeof address, " %zx", one->address);
    command += address;
  }
  FILE* output = popen((command + " 2>/dev/null").c_str(), "r");
  if (output == nullptr) {
    return;
  }
  size_t next = 0;  // instruction
  bool at_function = true;
  std::string line;
  char buffer[4200];
  while (std::fgets(buffer, sizeof buffer, output) != nullptr) {
    line += buffer;
    if (!line.ends_with('\n')) {
      continue;  // the name of a template can be long
    }
    line.pop_back();
    if (at_function && line.starts_with("0x")) {
      ++next;
    } else if (next > 0 && next <= those.size()) {
      std::vector<SourceFrame>& frames = those[next - 1]->frames;
      size_t colon = 0;
      if (at_function) {
        frames.push_back({.function = line == "??" ? "" : line});
      } else if (const int number = line_number(line, colon); number > 0) {
        frames.back().file = line.substr(0, colon);
        frames.back().line = number;
      }
      at_function = !at_function;
    }
    line.clear();
  }
  pclose(output);
}

}  // namespace

std::vector<SourceFrames> source_frames(const std::vector<const void*>& instructions) {
  constexpr size_t kAtOnce = 1000;  // of a command line
  std::vector<SourceFrames> all(instructions.size());
  std::map<std::string, std::vector<SourceFrames*>> files;
  for (size_t i = 0; i < all.size(); ++i) {
    Dl_info file;
    if (dladdr(instructions[i], &file) != 0 && file.dli_fbase != nullptr) {
      all[i].program = path_of(file);
      all[i].address = file_address(file, instructions[i]);
      files[all[i].program].push_back(&all[i]);
    }
  }
  for (const auto& [name, those] : files) {
    for (size_t i = 0; i < those.size(); i += kAtOnce) {
      const auto begin = those.begin() + static_cast<ptrdiff_t>(i);
      const auto count = static_cast<ptrdiff_t>(std::min(kAtOnce, those.size() - i));
      ask_addr2line(name, {begin, begin + count});
    }
  }
  return all;
}

}  // namespace binade::kernels
