#include <binade/dist/transport/nccl_api_internal.h>
#include <binade/kernels/base/error.h>
#include <dlfcn.h>

#include <cstdlib>

namespace binade::dist::nccl {
namespace {

constexpr int kLeastVersion = 21700;

struct Library {
  Api table{};
  std::string missing;

  Library() {
    const char* named = std::getenv("BINADE_NCCL_LIBRARY");
    const char* path = named && *named ? named : "libnccl.so.2";
    void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      missing = ::dlerror();
      return;
    }
    const auto find = [&](auto& function, const char* name) {
      void* symbol = ::dlsym(library, name);
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
      if (!symbol && missing.empty()) {
        missing = text(path, " has no ", name, "; NCCL 2.17 or later is needed");
      }
    };
#define BINADE_FIND(name) find(table.name, "nccl" #name)
    BINADE_FIND(GetVersion);
    BINADE_FIND(GetUniqueId);
    BINADE_FIND(CommInitRankConfig);
    BINADE_FIND(CommFinalize);
    BINADE_FIND(CommDestroy);
    BINADE_FIND(CommAbort);
    BINADE_FIND(CommGetAsyncError);
    BINADE_FIND(GetErrorString);
    BINADE_FIND(GetLastError);
    BINADE_FIND(GroupStart);
    BINADE_FIND(GroupEnd);
    BINADE_FIND(Send);
    BINADE_FIND(Recv);
    BINADE_FIND(AllReduce);
#undef BINADE_FIND
    int version = 0;
    if (missing.empty() && (table.GetVersion(&version) != kSuccess || version < kLeastVersion)) {
      missing = text(path, " is version ", version, ", expected ", kLeastVersion, " or later");
    }
  }
};

const Library& library() {
  static const Library* instance = new Library;  // its threads may outlive main()
  return *instance;
}

}  // namespace

const Api& api() {
  check(library().missing.empty(), "nccl: ", library().missing);
  return library().table;
}

std::string missing() { return library().missing; }

}  // namespace binade::dist::nccl
