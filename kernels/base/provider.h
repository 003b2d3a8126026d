// A provider is the name of the implementation of an operation that runs in this process. An
// environment variable gives it until it is set. A table in provider.cpp lists the families:
//
//   family      variable           variants besides own
//   gemm        BINADE_GEMM        kernels/gemm/gemm_provider.h
//   conv2d      BINADE_CONV2D      kernels/conv/conv2d_provider.h
//   softmax     BINADE_SOFTMAX     softmax and log-softmax; no library
//   norm        BINADE_NORM        kernels/norm/norm_provider.h
//   reduce      BINADE_REDUCE      reductions; no library
//   attention   BINADE_ATTENTION   kernels/attention/attention_provider.h
//
//   own            our kernels; which one follows from shape, dtype and device, never from timing
//   own:VARIANT    one of them. On GPUs products and convolution have simt, simt_64, simt_128
//                  (register tiles of 64 or 128 squared, or the one that fits), tensor, tensor_64,
//                  tensor_128. Tensor cores take f16 and bf16 (before sm_80 f16); other dtypes run
//                  the simt variant.
//   library        the vendor's library; an error if it is not found. A problem that the library
//                  does not support runs as own
//   auto           the default: the fastest of them on a GPU, decided once per problem
//                  (kernels/base/tuning.h), and own on the CPU. If a library is not found, one line
//                  says so, and own runs
//
// A variable with a wrong name makes the first call of any family an error, whichever family and
// device the call is for. Kernels of users come before all of these: kernels/user/user_kernels.h.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace binade::kernels {

// The meaning of a provider's name.
enum class KernelVariant : uint8_t {
  fitting,
  timed,
  naive,     // gemm
  tiled,     // gemm
  direct,    // conv2d
  winograd,  // conv2d
  simt,
  simt_64,
  simt_128,
  tensor,
  tensor_64,
  tensor_128,
  library,
  eigen,  // gemm
};

struct Provider {
  std::string_view name;
  KernelVariant variant;
  const char* missing = nullptr;  // why this build does not have it, else null
};

enum class ProviderFamily : uint8_t { gemm, conv2d, softmax, norm, reduce, attention };
inline constexpr int kProviderFamilies = 6;

// The names of a family: "softmax", "BINADE_SOFTMAX", and all providers, also those that this build
// does not have.
struct ProviderFamilyInfo {
  const char *name, *variable;
  std::vector<std::string_view> providers;
};
ProviderFamilyInfo provider_family(ProviderFamily family);

// By the name of a family. Throws Error with the valid names for a wrong family or provider.
void set_provider(std::string_view family, std::string_view name);
std::string_view provider(std::string_view family);

void set_provider(ProviderFamily family, std::string_view name);
const Provider& provider(ProviderFamily family);

// How many problems a process keeps what it found for: the plans of cuDNN on each device, the
// algorithms of cuBLASLt, the choices of auto for each operation. One more takes the place of the
// least recently used one, which is found anew when its problem comes again. BINADE_PLAN_LIMIT
// gives the number until it is set. It is at least 1; a lower one counts from the next new problem
// on.
inline constexpr int64_t kDefaultPlanLimit = 1024;
int64_t plan_limit();
void set_plan_limit(int64_t most);

}  // namespace binade::kernels
