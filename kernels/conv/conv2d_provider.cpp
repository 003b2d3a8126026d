#include <binade/kernels/base/provider.h>
#include <binade/kernels/conv/conv2d_provider.h>

namespace binade::kernels {
namespace {

constexpr Provider<Conv2dVariant> kProviders[] = {
    {"own", Conv2dVariant::fitting},
    {"own:direct", Conv2dVariant::direct},
    {"own:winograd", Conv2dVariant::winograd},
    {"own:simt", Conv2dVariant::simt},
    {"own:simt_64", Conv2dVariant::simt_64},
    {"own:simt_128", Conv2dVariant::simt_128},
    {"own:tensor", Conv2dVariant::tensor},
    {"own:tensor_64", Conv2dVariant::tensor_64},
    {"own:tensor_128", Conv2dVariant::tensor_128},
    {"library", Conv2dVariant::library, "this build has no cuDNN"},
    {"auto", Conv2dVariant::timed},
};

ProviderChoice<Conv2dVariant>& choice() {
  static ProviderChoice<Conv2dVariant> instance(kProviders, "conv2d", "BINADE_CONV2D");
  return instance;
}

}  // namespace

void set_conv2d_provider(std::string_view name) { choice().set(name, "set_conv2d_provider"); }
std::string_view conv2d_provider() { return choice().get().name; }
Conv2dVariant conv2d_variant() { return choice().get().variant; }

}  // namespace binade::kernels
