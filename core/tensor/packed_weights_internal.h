// KeptPacking: the link of one use of a weight to the packings that are kept
// (core/tensor/packed_weights.h). Internal to core.
//
//   KeptPacking packing(w);
//   kernels::gemm({.a = x, .b = transposed(w), .y = y, .packing = packing});
#pragma once
#include <binade/core/autograd/autograd.h>
#include <binade/kernels/base/weight_packing.h>

#include <atomic>
#include <memory>

namespace binade {

namespace detail {

void drop_packing(Storage* storage) noexcept;

struct PackedBuffer;

}  // namespace detail

class KeptPacking final : public kernels::WeightPacking {
 public:
  // Finds out whether packings of w may be kept: it is a parameter on the CPU, and no gradients are
  // recorded. If they are, a packing that exists is dropped.
  explicit KeptPacking(const Tensor& w) {
    Storage* storage = w.defined() ? w.handle()->storage.get() : nullptr;
    if (!storage) {
      return;
    }
    if (grad_enabled()) {
      if (storage->packed.load(std::memory_order_relaxed)) {
        detail::drop_packing(storage);
      }
    } else if (w.numel() >= kLeastElements && is_kept(w)) {
      weight_ = &w;
    }
  }
  KeptPacking(const KeptPacking&) = delete;
  KeptPacking& operator=(const KeptPacking&) = delete;

  operator kernels::WeightPacking*() { return weight_ ? this : nullptr; }  // NOLINT

  const std::byte* get(const kernels::PackingFormat& format,
                       const std::function<void(std::byte*)>& fill) override;

 private:
  // A smaller weight fits the first-level cache; packing it takes less time than finding a packing.
  static constexpr int64_t kLeastElements = 4096;
  static bool is_kept(const Tensor& w);

  const Tensor* weight_ = nullptr;
  std::shared_ptr<detail::PackedBuffer> held_;  // while the kernel runs
};

}  // namespace binade
