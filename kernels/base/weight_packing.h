// WeightPacking: keeps a weight packed in the order in which a kernel reads it, from one call to
// the next. core implements it (core/tensor/packed_weights.h); a kernel that is called without one
// packs the weight in every call. The bits of the result are the same.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

namespace binade::kernels {

// The properties, besides the weight and the processor, on which the bytes of a packing depend.
struct PackingFormat {
  enum class Order : uint8_t { product_columns, convolution_taps, recurrent_gates };
  Order order = Order::product_columns;
  bool pairs = false;  // kernels/gemm/gemm_pairs_internal.h
  size_t bytes = 0;    // without padding
  bool operator==(const PackingFormat&) const = default;
};

class WeightPacking {
 public:
  // Tiles read up to so many bytes beyond the last element of a packing.
  static constexpr size_t kPadding = 256;

  // The weight in this format, valid as long as this object. If it is not kept yet, fill() packs it
  // into new memory of format.bytes + kPadding. Null if it may not be kept: the kernel then packs
  // into its own memory.
  virtual const std::byte* get(const PackingFormat& format,
                               const std::function<void(std::byte*)>& fill) = 0;

 protected:
  ~WeightPacking() = default;
};

}  // namespace binade::kernels
