// The static memory of the program and its libraries: __device__ and __constant__ variables, and
// read-only memory, such as tables of constants. Variables have names if the program exports them
// (-rdynamic).
#include <binade/kernels/host/race_shadow.h>

#if BINADE_HOST_RACE
#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <memory>
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

FoundElement static_element(const void* address, size_t element_bytes) {
  FoundElement found;
  Dl_info info{};
  void* entry = nullptr;
  if (element_bytes == 0 || ::dladdr1(address, &info, &entry, RTLD_DL_SYMENT) == 0 ||
      info.dli_sname == nullptr || entry == nullptr) {
    return found;
  }
  const auto& symbol = *static_cast<const ElfW(Sym)*>(entry);
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status), &std::free);
  found.space = MemorySpace::global;
  found.array = status == 0 ? demangled.get() : info.dli_sname;
  found.element_bytes = element_bytes;
  found.count = static_cast<int64_t>(symbol.st_size / element_bytes);
  found.index = (static_cast<const char*>(address) - static_cast<const char*>(info.dli_saddr)) /
                static_cast<int64_t>(element_bytes);
  return found;
}

bool is_constant(const void* address) {
  const Segment* segment = segment_of(address);
  return segment != nullptr && !segment->writable;
}

}  // namespace binade::kernels::host::race

#endif
