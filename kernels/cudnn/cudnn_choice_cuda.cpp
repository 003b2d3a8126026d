#include <binade/kernels/cudnn/cudnn_api_internal.h>
#include <binade/kernels/cudnn/cudnn_choice_internal.h>

namespace binade::kernels::cudnn {

bool run_by_library(ProviderChoices& choices, const LibraryCall& call) {
  std::string why;
  if (call.wanted == KernelVariant::library) {
    require_library(call.op);
    return call.library(why);
  }
  if (call.wanted != KernelVariant::timed) {
    return false;
  }
  const auto candidates = [] {
    return std::vector<Candidate>{{"own", KernelVariant::fitting, ""},
                                  {"library", KernelVariant::library, absence()}};
  };
  const auto run = [&](KernelVariant variant, std::string& reason) {
    if (variant == KernelVariant::library) {
      return call.library(reason);
    }
    call.own();
    return true;
  };
  const KernelVariant chosen = choices.choose({.device = call.device,
                                               .key = call.key,
                                               .name = call.name,
                                               .candidates = candidates,
                                               .run = run});
  return chosen == KernelVariant::library && call.library(why);
}

}  // namespace binade::kernels::cudnn
