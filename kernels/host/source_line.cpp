#include <binade/kernels/base/source_frames.h>
#include <binade/kernels/host/source_line.h>

#include <mutex>
#include <unordered_map>
#include <vector>

namespace binade::kernels::host {
namespace {

FindingLine line_of_frames(std::vector<SourceFrame> frames) {
  FindingLine found;
  std::erase_if(frames, [](const SourceFrame& frame) { return frame.line == 0; });
  if (frames.empty()) {
    return found;
  }
  // The outermost frame in a kernel source; frames come innermost first.
  const SourceFrame* kernel = &frames.front();
  for (const SourceFrame& frame : frames) {
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

}  // namespace

void look_up_lines(const std::vector<const void*>& instructions) {
  LineCache& cache = line_cache();
  const std::lock_guard lock(cache.mutex);
  std::vector<const void*> unknown;
  for (const void* instruction : instructions) {
    if (cache.lines.emplace(instruction, FindingLine{}).second) {
      unknown.push_back(instruction);
    }
  }
  const std::vector<SourceFrames> found = source_frames(unknown);
  for (size_t i = 0; i < unknown.size(); ++i) {
    cache.lines[unknown[i]] = line_of_frames(found[i].frames);
  }
}

const FindingLine& source_line(const void* instruction) {
  look_up_lines({instruction});
  const std::lock_guard lock(line_cache().mutex);
  return line_cache().lines[instruction];
}

}  // namespace binade::kernels::host
