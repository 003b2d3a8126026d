// A stable sort of integer keys on a device: a radix sort of (key, position), 8 bits at a time,
// least significant first. The result does not depend on the order in which threads run.
#pragma once
#include <binade/kernels/base/workspace.h>

#include <cstdint>

namespace binade::kernels {

class RadixOrder {
 public:
  // For `count` keys of `bits` bits. Holds 32 bytes of memory per key while it exists.
  RadixOrder(Device device, int64_t count, int bits);

  int64_t* input_keys() const { return pairs_.as<int64_t>(); }  // write these before sort()
  void sort();
  const int64_t* keys() const { return keys_; }    // ascending
  const int64_t* order() const { return order_; }  // the position of each key in the input

 private:
  int64_t count_;
  int bits_;
  Workspace pairs_;    // two arrays of keys and two of positions
  Workspace offsets_;  // [digits, blocks]
  const int64_t *keys_ = nullptr, *order_ = nullptr;
};

}  // namespace binade::kernels
