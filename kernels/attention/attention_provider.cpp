#include <binade/kernels/attention/attention_provider.h>

namespace binade::kernels {
namespace {

ProviderChoice& choice() {
  static ProviderChoice instance(
      {.name = "attention", .variable = "BINADE_ATTENTION", .variants = {}, .tiles = false});
  return instance;
}

}  // namespace

void set_attention_provider(std::string_view name) { choice().set(name); }
std::string_view attention_provider() { return choice().get().name; }
KernelVariant attention_variant() { return choice().get().variant; }

}  // namespace binade::kernels
