#include <binade/kernels/conv/conv2d_provider.h>

namespace binade::kernels {
namespace {

constexpr Provider kVariants[] = {
    {"own:direct", KernelVariant::direct},
    {"own:winograd", KernelVariant::winograd},
};

ProviderChoice& choice() {
  static ProviderChoice instance(
      {.name = "conv2d", .variable = "BINADE_CONV2D", .variants = kVariants});
  return instance;
}

}  // namespace

void set_conv2d_provider(std::string_view name) { choice().set(name); }
std::string_view conv2d_provider() { return choice().get().name; }
KernelVariant conv2d_variant() { return choice().get().variant; }

}  // namespace binade::kernels
