#include <binade/kernels/gemm/gemm_provider.h>

namespace binade::kernels {
namespace {

constexpr Provider kVariants[] = {
    {"own:naive", KernelVariant::naive},
    {"own:tiled", KernelVariant::tiled},
};

ProviderChoice& choice() {
  static ProviderChoice instance(
      {.name = "gemm", .variable = "BINADE_GEMM", .variants = kVariants});
  return instance;
}

}  // namespace

void set_gemm_provider(std::string_view name) { choice().set(name); }
std::string_view gemm_provider() { return choice().get().name; }
KernelVariant gemm_variant() { return choice().get().variant; }

}  // namespace binade::kernels
