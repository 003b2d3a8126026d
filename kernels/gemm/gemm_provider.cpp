#include <binade/kernels/base/provider.h>
#include <binade/kernels/gemm/gemm_provider.h>

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
    {"auto", GemmVariant::timed},
};

ProviderChoice<GemmVariant>& choice() {
  static ProviderChoice<GemmVariant> instance(kProviders, "gemm", "BINADE_GEMM");
  return instance;
}

}  // namespace

void set_gemm_provider(std::string_view name) { choice().set(name, "set_gemm_provider"); }
std::string_view gemm_provider() { return choice().get().name; }
GemmVariant gemm_variant() { return choice().get().variant; }

}  // namespace binade::kernels
