// The provider of an operation that has own kernels and cuDNN, and no variants of its own kernels.
#pragma once
#include <binade/kernels/cuda/tuning_internal.h>

namespace binade::kernels::cudnn {

struct LibraryCall {
  const char* op;        // in errors: "norm"
  KernelVariant wanted;  // fitting, library or timed
  Device device;
  std::span<const int64_t> key;       // all that the choice depends on
  std::function<std::string()> name;  // of the problem, in the table
  // Runs the call, or does nothing, says why, and returns false.
  std::function<bool(std::string& why)> library;
  std::function<void()> own;  // runs the call, for timing; results may be overwritten
};

// Returns true if the library has run the call; else own kernels are to run it.
bool run_by_library(ProviderChoices& choices, const LibraryCall& call);

}  // namespace binade::kernels::cudnn
