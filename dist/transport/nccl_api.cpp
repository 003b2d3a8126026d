#include <binade/dist/transport/nccl_api_internal.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/vendor_library.h>

namespace binade::dist::nccl {
namespace {

constexpr int kLeastVersion = 21700;

struct Library {
  Api table{};
  kernels::LoadedLibrary loaded;

  Library() : loaded(kernels::kNccl, [this](const auto& find) { return fill(find); }) {}

 private:
  std::string fill(const kernels::LoadedLibrary::Find& find) {
    bool all = true;
#define BINADE_FIND(name) all &= kernels::find_function(find, "nccl" #name, table.name)
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
    if (all && (table.GetVersion(&version) != kSuccess || version < kLeastVersion)) {
      return text("it is version ", version, ", expected ", kLeastVersion, " or later");
    }
    return {};
  }
};

const Library& library() {
  static const Library* instance = new Library;  // its threads may outlive main()
  return *instance;
}

}  // namespace

const Api& api() {
  check(library().loaded.missing().empty(), "nccl: ", library().loaded.missing());
  return library().table;
}

std::string missing() { return library().loaded.missing(); }
std::string path() { return library().loaded.path(); }

}  // namespace binade::dist::nccl
