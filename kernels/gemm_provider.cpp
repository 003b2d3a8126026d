#include <binade/kernels/gemm_provider.h>
#include <binade/kernels/provider.h>

#include <atomic>
#include <cstdlib>

namespace binade::kernels {
namespace {

constexpr Provider<GemmVariant> kProviders[] = {
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

const Provider<GemmVariant>* find(std::string_view name, const char* source) {
  return find_provider<GemmVariant>(kProviders, name, "gemm", source);
}

std::atomic<const Provider<GemmVariant>*>& current() {
  static std::atomic<const Provider<GemmVariant>*> provider = [] {
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
