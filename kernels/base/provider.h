// Which implementation of an operation runs: process-wide, by a name, from an environment variable
// until it is set. gemm and conv2d have such names (kernels/gemm/gemm_provider.h,
// kernels/conv/conv2d_provider.h), and so do attention and the norms, which have no variants
// (kernels/attention/attention_provider.h, kernels/norm/norm_provider.h):
//
//   own            our kernels; which one follows from shape, dtype and device, never from timing
//   own:VARIANT    one of them. On GPUs all operations have simt, simt_64, simt_128 (register tiles
//                  of 64 or 128 squared, or the one that fits), tensor, tensor_64, tensor_128.
//                  Tensor cores take f16 and bf16 (before sm_80 f16); other dtypes run the simt
//                  variant.
//   library        the vendor's; an error if it is not found, and own where it has nothing for a
//                  problem
//   auto           the default: the fastest of them on a GPU, decided once per problem
//                  (kernels/base/tuning.h), and own on the CPU. A library that is not found is
//                  noted in one line, and own runs
#pragma once
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

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
  const char* missing = nullptr;  // why this build does not have it
};

// The providers of one operation and the chosen one.
class ProviderChoice {
 public:
  struct Operation {
    const char* name;
    const char* variable;                // of the environment
    std::span<const Provider> variants;  // own:VARIANT that other operations do not have
    bool tiles = true;                   // whether it has own:simt and own:tensor
  };

  // REQUIRES: the operation's variants live as long as the choice.
  explicit ProviderChoice(const Operation& operation);
  // Throws Error with the valid names.
  void set(std::string_view name) { current_ = find(name, setter_); }
  const Provider& get() const { return *current_.load(); }

 private:
  const Provider* find(std::string_view name, std::string_view source) const;

  const Operation operation_;
  const std::string setter_;
  std::atomic<const Provider*> current_;
};

}  // namespace binade::kernels
