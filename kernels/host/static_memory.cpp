// The static memory of the program and its libraries: __device__ and __constant__ variables,
// tables.
#include <binade/kernels/host/race.h>

#if BINADE_HOST_RACE
#include <link.h>

#include <vector>

namespace binade::kernels::host::race {
namespace {

using Segments = std::vector<std::pair<uintptr_t, uintptr_t>>;  // begin and end

int add_segments(dl_phdr_info* module, size_t, void* data) {
  auto& segments = *static_cast<Segments*>(data);
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    const auto& header = module->dlpi_phdr[i];
    if (header.p_type == PT_LOAD) {
      const uintptr_t begin = module->dlpi_addr + header.p_vaddr;
      segments.emplace_back(begin, begin + header.p_memsz);
    }
  }
  return 0;
}

bool contains(const Segments& segments, uintptr_t address) {
  return std::any_of(segments.begin(), segments.end(), [&](const auto& segment) {
    return address >= segment.first && address < segment.second;
  });
}

}  // namespace

bool is_static_memory(const void* address) {
  static auto& segments = *new Segments;
  const auto at = reinterpret_cast<uintptr_t>(address);
  if (!contains(segments, at)) {  // a library may have been loaded since
    segments.clear();
    dl_iterate_phdr(add_segments, &segments);
  }
  return contains(segments, at);
}

}  // namespace binade::kernels::host::race

#endif
