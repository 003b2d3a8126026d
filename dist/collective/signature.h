// A description of a collective: all ranks must agree on it before they exchange data.
#pragma once
#include <binade/dist/collective/reduce_op.h>
#include <binade/kernels/base/dtype.h>

#include <string>

namespace binade::dist {

enum class Collective : uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  barrier,
  scatter,
  gather,
  split,
  connect,  // of devices
};

constexpr const char* to_string(Collective collective) {
  constexpr const char* kName[] = {"all_reduce", "reduce_scatter", "all_gather",
                                   "broadcast",  "barrier",        "scatter",
                                   "gather",     "split",          "connect"};
  return kName[static_cast<int>(collective)];
}

// Sent between ranks as raw bytes.
struct Signature {
  Collective collective = Collective::barrier;
  DType dtype = DType::u8;
  ReduceOp op = ReduceOp::sum;
  uint8_t variant = 0;  // bit 0: f32 carry, bit 1: the library's algorithm
  int32_t root = 0;
  int64_t count = 0;  // elements of this rank's input
  int64_t piece = 0;  // bytes of a piece of the ring

  bool operator==(const Signature&) const = default;
};
static_assert(sizeof(Signature) == 24);

// False for bytes of another end that name no collective, dtype or operation.
bool is_valid(const Signature& signature);

// REQUIRES: is_valid(). "all_reduce f32 sum 1000", "broadcast i64 2 from rank 0", "barrier".
std::string to_string(const Signature& signature);

}  // namespace binade::dist
