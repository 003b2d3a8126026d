#include <binade/kernels/base/error.h>
#include <binade/kernels/gemm_provider.h>

#include <atomic>
#include <cstdlib>

namespace binade::kernels {
namespace {

struct Provider {
  std::string_view name;
  GemmVariant variant;
};
constexpr Provider kProviders[] = {
    {"own", GemmVariant::fitting},
    {"own:naive", GemmVariant::naive},
    {"own:tiled", GemmVariant::tiled},
    {"own:simt", GemmVariant::simt},
    {"own:simt_64", GemmVariant::simt_64},
    {"own:simt_128", GemmVariant::simt_128},
    {"own:tensor", GemmVariant::tensor},
    {"own:tensor_64", GemmVariant::tensor_64},
    {"own:tensor_128", GemmVariant::tensor_128},
    {"library", GemmVariant::library},
    {"auto", GemmVariant::fitting},
};

const Provider* find(std::string_view name, const char* source) {
  std::string names;
  for (const Provider& provider : kProviders) {
    if (provider.name == name) {
      return &provider;
    }
    names += (names.empty() ? "" : ", ") + std::string(provider.name);
  }
  fail(source, ": got the gemm provider \"", name, "\", expected one of ", names);
}

std::atomic<const Provider*>& current() {
  static std::atomic<const Provider*> provider = [] {
    const char* name = std::getenv("BINADE_GEMM");
    return name ? find(name, "BINADE_GEMM") : &kProviders[0];
  }();
  return provider;
}

}  // namespace

void set_gemm_provider(std::string_view name) { current() = find(name, "set_gemm_provider"); }
std::string_view gemm_provider() { return current().load()->name; }
GemmVariant gemm_variant() { return current().load()->variant; }

}  // namespace binade::kernels
