#include <binade/kernels/gemm/gemm_provider.h>

namespace binade::kernels {
namespace {

#ifdef BINADE_WITH_EIGEN
constexpr const char* kEigenMissing = nullptr;
#else
constexpr const char* kEigenMissing =
    "this build has no Eigen (install libeigen3-dev and configure with -DBINADE_EIGEN=ON)";
#endif

constexpr Provider kVariants[] = {
    {"own:naive", KernelVariant::naive},
    {"own:tiled", KernelVariant::tiled},
    {"eigen", KernelVariant::eigen, kEigenMissing},
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
