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

// A set of hashes of storages: a storage that is not in it has no packing; one that is in it may
// have a packing.
class PackedFilter {
 public:
  bool may_hold(const Storage* storage) const {
    return counts_[slot(storage)].load(std::memory_order_relaxed) != 0;
  }
  void add(const Storage* storage) { counts_[slot(storage)].fetch_add(1); }
  void remove(const Storage* storage) { counts_[slot(storage)].fetch_sub(1); }

 private:
  static constexpr size_t kSlots = 4096;
  static size_t slot(const Storage* storage) {
    return static_cast<size_t>(reinterpret_cast<uintptr_t>(storage) / 64 * 0x9e3779b97f4a7c15u >>
                               52);
  }
  std::atomic<uint32_t> counts_[kSlots] = {};
};
extern PackedFilter packed_filter;

void drop_packing(const Storage* storage) noexcept;

struct PackedBuffer;

}  // namespace detail

class KeptPacking final : public kernels::WeightPacking {
 public:
  // Finds out whether packings of w may be kept: it is a parameter on the CPU, and no gradients are
  // recorded. If they are, a packing that exists is dropped.
  explicit KeptPacking(const Tensor& w) {
    const Storage* storage = w.defined() ? w.handle()->storage.get() : nullptr;
    if (!storage) {
      return;
    }
    if (grad_enabled()) {
      if (detail::packed_filter.may_hold(storage)) {
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
