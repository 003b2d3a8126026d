// CastCache: parameters in another dtype, without history (internal to core;
// core/precision/precision.h).
//
// An entry is good while its parameter has the version it was cast from and nobody wrote to the
// copy. A parameter that only the cache still holds is dropped when the cache has doubled, so it
// holds at most twice what is alive. While a device captures a graph nothing is looked up or kept:
// the cast belongs into the graph.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <map>

namespace binade {

class CastCache {
 public:
  // Whether x is a parameter: a leaf, or, frozen, a range that its arena holds too.
  static bool wants(const Tensor& x);
  // Undefined where there is none.
  Tensor find(const Tensor& x, DType dtype);
  void keep(const Tensor& x, const Tensor& value);
  int64_t size() const { return static_cast<int64_t>(entries_.size()); }
  int64_t bytes() const;

 private:
  struct Entry {
    Tensor source, value;
    uint32_t source_version, value_version;
    void* stream;
  };
  using Key = std::pair<const TensorData*, DType>;
  void drop_dead();

  std::map<Key, Entry> entries_;
  size_t sweep_at_ = 64;
};

}  // namespace binade
