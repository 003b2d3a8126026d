// Chooses the implementation of a convolution on a device (kernels/conv/conv2d_provider.h).
#pragma once
#include <binade/kernels/base/provider.h>
#include <binade/kernels/conv/conv2d_internal.h>

#include <functional>
#include <string>

namespace binade::kernels {

// A call to one of the three directions.
struct Conv2dCall {
  const char* name;
  int direction;
  const View& result;
  const Conv2dSizes& size;
  const Conv2dGeometry& geometry;
  bool bias = false, relu = false;
};

// Computes the call by a variant, or does nothing, sets `why` and returns false.
using Conv2dRun = std::function<bool(KernelVariant variant, std::string& why)>;

// The variant that the provider selects for this call. `tiles`: tiles can compute it well. run() is
// called for timing.
KernelVariant conv2d_choice(const Conv2dCall& call, bool tiles, const Conv2dRun& run);

}  // namespace binade::kernels
