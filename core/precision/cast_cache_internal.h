// CastCache: parameters in another dtype, without history (internal to core;
// core/precision/precision.h).
//
// An entry is valid while its parameter has the version it was cast from and nothing has written to
// the copy. Parameters that only the cache still holds are dropped when the cache has doubled, so
// it holds at most twice what is alive. While a device captures a graph the cache is not used: the
// cast belongs to the graph. Only the outermost scope caches casts; each scope's cache also keeps
// the numbers of its calls, where it has delayed scales.
#pragma once
#include <binade/core/precision/format_calls_internal.h>
#include <binade/core/tensor/tensor.h>

#include <map>
#include <memory>

namespace binade {

class CastCache {
 public:
  // True if x is a parameter: a leaf or, if frozen, a range that its arena holds too.
  static bool wants(const Tensor& x);
  // The cached copy; undefined if there is none.
  Tensor find(const Tensor& x, DType dtype);
  void keep(const Tensor& x, const Tensor& value);
  int64_t size() const { return static_cast<int64_t>(entries_.size()); }
  int64_t bytes() const;

  std::unique_ptr<FormatCalls> calls = {};  // of a scope with delayed scales

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
