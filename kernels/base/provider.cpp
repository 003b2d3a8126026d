#include <binade/kernels/base/error.h>
#include <binade/kernels/base/printable.h>
#include <binade/kernels/base/provider.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <span>
#include <string>

namespace binade::kernels {
namespace {

#ifdef BINADE_WITH_EIGEN
constexpr const char* kEigenMissing = nullptr;
#else
constexpr const char* kEigenMissing =
    "this build has no Eigen (install libeigen3-dev and configure with -DBINADE_EIGEN=ON)";
#endif

constexpr Provider kFirst[] = {{"own", KernelVariant::fitting}};
constexpr Provider kOfGemm[] = {
    {"own:naive", KernelVariant::naive},
    {"own:tiled", KernelVariant::tiled},
    {"eigen", KernelVariant::eigen, kEigenMissing},
};
constexpr Provider kOfConv2d[] = {
    {"own:direct", KernelVariant::direct},
    {"own:winograd", KernelVariant::winograd},
};
constexpr Provider kTiles[] = {
    {"own:simt", KernelVariant::simt},           {"own:simt_64", KernelVariant::simt_64},
    {"own:simt_128", KernelVariant::simt_128},   {"own:tensor", KernelVariant::tensor},
    {"own:tensor_64", KernelVariant::tensor_64}, {"own:tensor_128", KernelVariant::tensor_128},
};
constexpr Provider kLibrary[] = {{"library", KernelVariant::library}};
constexpr Provider kLast[] = {{"auto", KernelVariant::timed}};

using Providers = std::span<const Provider>;

struct Row {
  const char *name, *variable;
  Providers variants, tiles, library;
};
constexpr Row kRows[kProviderFamilies] = {
    {"gemm", "BINADE_GEMM", kOfGemm, kTiles, kLibrary},
    {"conv2d", "BINADE_CONV2D", kOfConv2d, kTiles, kLibrary},
    {"softmax", "BINADE_SOFTMAX", {}, {}, {}},
    {"norm", "BINADE_NORM", {}, {}, kLibrary},
    {"reduce", "BINADE_REDUCE", {}, {}, {}},
    {"attention", "BINADE_ATTENTION", {}, {}, kLibrary},
};

const Provider* find_provider(const Row& row, std::string_view name, std::string_view source) {
  std::string names;
  for (const Providers list :
       {Providers(kFirst), row.variants, row.tiles, row.library, Providers(kLast)}) {
    for (const Provider& one : list) {
      if (one.name == name) {
        check(!one.missing, source, ": got the ", row.name, " provider \"", name, "\", but ",
              one.missing, "; use \"own\"");
        return &one;
      }
      names += (names.empty() ? "" : ", ") + std::string(one.name);
    }
  }
  fail(source, ": got the ", row.name, " provider \"", name, "\", expected one of ", names);
}

// The chosen provider of each family. The first use reads the variables of all families, so that
// the first call of any family reports a wrong one.
class ChosenProviders {
 public:
  ChosenProviders() {
    for (int i = 0; i < kProviderFamilies; ++i) {
      const char* name = std::getenv(kRows[i].variable);
      chosen_[i] = find_provider(kRows[i], name ? name : "auto", kRows[i].variable);
    }
  }
  std::atomic<const Provider*>& of(ProviderFamily family) {
    return chosen_[static_cast<int>(family)];
  }

 private:
  std::atomic<const Provider*> chosen_[kProviderFamilies];
};

ChosenProviders& chosen_providers() {
  static ChosenProviders instance;
  return instance;
}

ProviderFamily find_family(std::string_view name, const char* source) {
  std::string names;
  for (int i = 0; i < kProviderFamilies; ++i) {
    if (name == kRows[i].name) {
      return static_cast<ProviderFamily>(i);
    }
    names += (names.empty() ? "" : ", ") + std::string(kRows[i].name);
  }
  fail(source, ": got the family \"", name, "\", expected one of ", names);
}

}  // namespace

ProviderFamilyInfo provider_family(ProviderFamily family) {
  const Row& row = kRows[static_cast<int>(family)];
  ProviderFamilyInfo info{row.name, row.variable, {}};
  for (const Providers list :
       {Providers(kFirst), row.variants, row.tiles, row.library, Providers(kLast)}) {
    for (const Provider& one : list) {
      info.providers.push_back(one.name);
    }
  }
  return info;
}

void set_provider(std::string_view family, std::string_view name) {
  set_provider(find_family(family, "set_provider"), name);
}
std::string_view provider(std::string_view family) {
  return provider(find_family(family, "provider")).name;
}

void set_provider(ProviderFamily family, std::string_view name) {
  const Row& row = kRows[static_cast<int>(family)];
  chosen_providers().of(family) =
      find_provider(row, name, text("set_provider(\"", row.name, "\")"));
}
const Provider& provider(ProviderFamily family) { return *chosen_providers().of(family).load(); }

namespace {

int64_t plan_limit_of_environment() {
  const char* value = std::getenv("BINADE_PLAN_LIMIT");
  if (!value) {
    return kDefaultPlanLimit;
  }
  const std::string_view word = value;
  int64_t most = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), most);
  check(error == std::errc() && end == word.data() + word.size() && most >= 1,
        "BINADE_PLAN_LIMIT: got \"", printable(word), "\", expected a number of plans, at least 1");
  return most;
}

std::atomic<int64_t>& chosen_plan_limit() {
  static std::atomic<int64_t> most{plan_limit_of_environment()};
  return most;
}

}  // namespace

int64_t plan_limit() { return chosen_plan_limit(); }

void set_plan_limit(int64_t most) {
  check(most >= 1, "set_plan_limit: got ", most, ", expected at least 1");
  chosen_plan_limit() = most;
}

}  // namespace binade::kernels
