#include <binade/core/device/graph.h>
#include <binade/core/precision/cast_cache_internal.h>
#include <binade/core/precision/precision.h>
#include <binade/kernels/base/stream.h>

namespace binade {

bool CastCache::wants(const Tensor& x) {
  const bool parameter =
      x.history() ? x.history()->leaf : x.handle()->storage->parent && !x.handle().unique();
  return parameter && !is_capturing(x.device());
}

Tensor CastCache::find(const Tensor& x, DType dtype) {
  const auto found = entries_.find({x.handle().get(), dtype});
  if (found == entries_.end()) {
    return {};
  }
  const Entry& entry = found->second;
  const bool good = entry.source_version == x.version() &&
                    entry.value_version == entry.value.version() &&
                    entry.stream == kernels::current_stream(x.device());
  return good ? entry.value : Tensor();
}

void CastCache::keep(const Tensor& x, const Tensor& value) {
  if (entries_.size() >= sweep_at_) {
    drop_dead();
    sweep_at_ = 2 * entries_.size() + 64;
  }
  entries_.insert_or_assign(Key{x.handle().get(), value.dtype()},
                            Entry{x.detach(), value.detach(), x.version(), value.version(),
                                  kernels::current_stream(x.device())});
}

void CastCache::drop_dead() {
  std::erase_if(entries_, [](const auto& item) { return item.second.source.handle().unique(); });
}

int64_t CastCache::bytes() const {
  int64_t sum = 0;
  for (const auto& [key, entry] : entries_) {
    sum += entry.value.numel() * static_cast<int64_t>(size_of(entry.value.dtype()));
  }
  return sum;
}

void PrecisionScope::drop_cache() noexcept { delete std::exchange(cache, nullptr); }

CastCacheStats cast_cache_stats() {
  const PrecisionScope* scope = detail::thread_state.precision;
  const CastCache* cache = scope ? scope->root->cache : nullptr;
  return cache ? CastCacheStats{cache->size(), cache->bytes()} : CastCacheStats{};
}

}  // namespace binade
