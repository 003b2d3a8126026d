// Packed weights: the parameters of linear and recurrent layers and convolutions in the order in
// which the CPU's kernels read them, kept from one call to the next while no gradients are
// recorded.
//
// A parameter is packed when an op first uses it under a NoGradGuard. The packing serves as long as
// the parameter has the same version, so after an optimizer's step, load_state(), copy_() or
// another change in place the next use packs again. A parameter that gave out a pointer by
// data<T>() is not kept any more, since a write through the pointer cannot be seen; data<const T>()
// changes nothing. A packing is dropped when an op records the parameter (training has resumed) and
// when the parameter dies. Results have the same bits with and without packings.
//
// A parameter has at most one packing, which is not larger than the parameter itself; layouts that
// are larger (channels of a convolution that do not fill vectors, f16 computed in f32) are not
// kept. memory_stats() counts packings as allocated memory. Any number of threads may use a model.
#pragma once
#include <cstdint>

namespace binade {

struct PackedWeightStats {
  int64_t weights = 0;  // that have a packing
  int64_t bytes = 0;    // of all packings, without the padding of 256 bytes each
};
PackedWeightStats packed_weight_stats();

// Whether packings are kept; BINADE_PACKED_WEIGHTS=on|off decides until set_packed_weights() is
// called, the default is on. Turning it off drops all packings.
bool packed_weights();
void set_packed_weights(bool on);

}  // namespace binade
