// The static memory of the program and its libraries: __device__ and __constant__ variables, and
// read-only memory, such as tables of constants.
#include <binade/kernels/host/race.h>

#if BINADE_HOST_RACE
#include <link.h>

#include <vector>

namespace binade::kernels::host::race {
namespace {

struct Segment {
  uintptr_t begin, end;
  bool writable;
};
using Segments = std::vector<Segment>;

int add_segments(dl_phdr_info* module, size_t, void* data) {
  auto& segments = *static_cast<Segments*>(data);
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    const auto& header = module->dlpi_phdr[i];
    if (header.p_type == PT_LOAD) {
      const uintptr_t begin = module->dlpi_addr + header.p_vaddr;
      segments.push_back({begin, begin + header.p_memsz, (header.p_flags & PF_W) != 0});
    }
  }
  return 0;
}

const Segment* segment_in(const Segments& segments, uintptr_t address) {
  const auto found = std::find_if(segments.begin(), segments.end(), [&](const Segment& segment) {
    return address >= segment.begin && address < segment.end;
  });
  return found == segments.end() ? nullptr : &*found;
}

const Segment* segment_of(const void* address) {
  static auto& segments = *new Segments;
  const auto at = reinterpret_cast<uintptr_t>(address);
  if (segment_in(segments, at) == nullptr) {  // a library may have been loaded since
    segments.clear();
    dl_iterate_phdr(add_segments, &segments);
  }
  return segment_in(segments, at);
}

}  // namespace

bool is_static_memory(const void* address) { return segment_of(address) != nullptr; }

bool is_constant(const void* address) {
  const Segment* segment = segment_of(address);
  return segment != nullptr && !segment->writable;
}

}  // namespace binade::kernels::host::race

#endif
