#include <binade/kernels/conv2d_provider.h>
#include <binade/kernels/provider.h>

#include <atomic>
#include <cstdlib>

namespace binade::kernels {
namespace {

constexpr Provider<Conv2dVariant> kProviders[] = {
    {"own", Conv2dVariant::fitting},
    {"own:direct", Conv2dVariant::direct},
    {"own:simt", Conv2dVariant::simt},
    {"own:simt_64", Conv2dVariant::simt_64},
    {"own:simt_128", Conv2dVariant::simt_128},
    {"own:tensor", Conv2dVariant::tensor},
    {"own:tensor_64", Conv2dVariant::tensor_64},
    {"own:tensor_128", Conv2dVariant::tensor_128},
    {"library", Conv2dVariant::library},
    {"auto", Conv2dVariant::fitting},
};

const Provider<Conv2dVariant>* find(std::string_view name, const char* source) {
  const auto* provider = find_provider<Conv2dVariant>(kProviders, name, "conv2d", source);
  check(provider->variant != Conv2dVariant::library, source,
        ": got the conv2d provider \"library\", but this build has no cuDNN; use \"own\"");
  return provider;
}

std::atomic<const Provider<Conv2dVariant>*>& current() {
  static std::atomic<const Provider<Conv2dVariant>*> provider = [] {
    const char* name = std::getenv("BINADE_CONV2D");
    return name ? find(name, "BINADE_CONV2D") : &kProviders[0];
  }();
  return provider;
}

}  // namespace

void set_conv2d_provider(std::string_view name) { current() = find(name, "set_conv2d_provider"); }
std::string_view conv2d_provider() { return current().load()->name; }
Conv2dVariant conv2d_variant() { return current().load()->variant; }

}  // namespace binade::kernels
