#include <binade/kernels/norm/norm_provider.h>

namespace binade::kernels {
namespace {

ProviderChoice& choice() {
  static ProviderChoice instance(
      {.name = "norm", .variable = "BINADE_NORM", .variants = {}, .tiles = false});
  return instance;
}

}  // namespace

void set_norm_provider(std::string_view name) { choice().set(name); }
std::string_view norm_provider() { return choice().get().name; }
KernelVariant norm_variant() { return choice().get().variant; }

}  // namespace binade::kernels
