#include <binade/kernels/base/error.h>
#include <binade/kernels/base/provider.h>

#include <cstdlib>

namespace binade::kernels {
namespace {

constexpr Provider kFirst[] = {{"own", KernelVariant::fitting}};
constexpr Provider kTiles[] = {
    {"own:simt", KernelVariant::simt},           {"own:simt_64", KernelVariant::simt_64},
    {"own:simt_128", KernelVariant::simt_128},   {"own:tensor", KernelVariant::tensor},
    {"own:tensor_64", KernelVariant::tensor_64}, {"own:tensor_128", KernelVariant::tensor_128},
};
constexpr Provider kLast[] = {
    {"library", KernelVariant::library},
    {"auto", KernelVariant::timed},
};

}  // namespace

ProviderChoice::ProviderChoice(const Operation& operation)
    : operation_(operation), setter_("set_" + std::string(operation.name) + "_provider") {
  const char* name = std::getenv(operation.variable);
  current_ = find(name ? name : "auto", operation.variable);
}

const Provider* ProviderChoice::find(std::string_view name, std::string_view source) const {
  std::string names;
  const std::span<const Provider> tiles =
      operation_.tiles ? std::span<const Provider>(kTiles) : std::span<const Provider>();
  const std::span<const Provider> lists[] = {kFirst, operation_.variants, tiles, kLast};
  for (const std::span<const Provider>& list : lists) {
    for (const Provider& provider : list) {
      if (provider.name == name) {
        check(!provider.missing, source, ": got the ", operation_.name, " provider \"", name,
              "\", but ", provider.missing, "; use \"own\"");
        return &provider;
      }
      names += (names.empty() ? "" : ", ") + std::string(provider.name);
    }
  }
  fail(source, ": got the ", operation_.name, " provider \"", name, "\", expected one of ", names);
}

}  // namespace binade::kernels
