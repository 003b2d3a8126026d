// Chooses between cuDNN and our own kernels for operations whose own kernels have no variants.
#pragma once
#include <binade/kernels/cuda/tuning_internal.h>

namespace binade::kernels::cudnn {

struct LibraryCall {
  const char* op;        // name for errors: "norm"
  KernelVariant wanted;  // fitting, library or timed
  Device device;
  std::span<const int64_t> key;       // everything that the choice depends on
  std::function<std::string()> name;  // name of the problem for the table of choices
  // Runs the call and returns true, or does nothing and sets `why`.
  std::function<bool(std::string& why)> library;
  std::function<void()> own;  // runs the call, for timing; results may be overwritten
};

// Returns true if the library has run the call; if not, the caller runs its own kernels.
bool run_by_library(ProviderChoices& choices, const LibraryCall& call);

}  // namespace binade::kernels::cudnn
