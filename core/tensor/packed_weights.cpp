// The packings of all parameters: one table, by storage, behind one lock. Memory is packed outside
// of the lock; a thread that needs a weight while another one packs it does not wait, but packs
// into memory of its own.
#include <binade/core/device/memory.h>
#include <binade/core/tensor/packed_weights.h>
#include <binade/core/tensor/packed_weights_internal.h>
#include <binade/kernels/base/error.h>

#include <cstdlib>
#include <mutex>
#include <string_view>
#include <unordered_map>

namespace binade {
namespace detail {

struct PackedBuffer {
  explicit PackedBuffer(size_t bytes)
      : bytes(bytes), data(static_cast<std::byte*>(allocate(bytes))) {}
  ~PackedBuffer() { release(data, bytes); }
  PackedBuffer(const PackedBuffer&) = delete;
  PackedBuffer& operator=(const PackedBuffer&) = delete;
  const size_t bytes;
  std::byte* const data;
};

}  // namespace detail

namespace {

using detail::PackedBuffer;

// The weight that a packing was made from. It may be used through several views; the last counts.
struct Source {
  const std::byte* data;
  DType dtype;
  Dims sizes, strides;
  uint32_t version;
  kernels::PackingFormat format;
  bool operator==(const Source&) const = default;
};

struct PackedEntry {
  Source source;
  std::shared_ptr<PackedBuffer> buffer;
  bool ready = false;  // false while a thread packs
};

class PackedTable {
 public:
  // Returns the packing if it is ready, else null. Then `mine` holds new memory that the caller
  // must fill, unless another thread is filling it now.
  std::shared_ptr<PackedBuffer> find(Storage* storage, const Source& source,
                                     std::shared_ptr<PackedBuffer>& mine) {
    std::shared_ptr<PackedBuffer> old;  // released after the lock
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = entries_.try_emplace(storage);
    PackedEntry& entry = at->second;
    if (is_new) {
      storage->packed.store(true, std::memory_order_relaxed);
    } else if (entry.source == source) {
      return entry.ready ? entry.buffer : nullptr;
    }
    old = std::move(entry.buffer);
    entry.ready = false;
    try {
      entry.buffer =
          std::make_shared<PackedBuffer>(source.format.bytes + kernels::WeightPacking::kPadding);
    } catch (...) {
      erase(at);
      throw;
    }
    entry.source = source;
    mine = entry.buffer;
    return nullptr;
  }

  void set_ready(Storage* storage, const std::shared_ptr<PackedBuffer>& filled) {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(storage);
    if (at != entries_.end() && at->second.buffer == filled) {
      at->second.ready = true;
    }
  }

  void drop(Storage* storage) noexcept {
    std::shared_ptr<PackedBuffer> old;
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(storage);
    if (at != entries_.end()) {
      old = std::move(at->second.buffer);
      erase(at);
    }
  }

  void drop_all() {
    const std::lock_guard lock(mutex_);
    while (!entries_.empty()) {
      erase(entries_.begin());
    }
  }

  PackedWeightStats stats() {
    const std::lock_guard lock(mutex_);
    PackedWeightStats stats;
    for (const auto& [storage, entry] : entries_) {
      ++stats.weights;
      stats.bytes += static_cast<int64_t>(entry.source.format.bytes);
    }
    return stats;
  }

 private:
  using Entries = std::unordered_map<Storage*, PackedEntry>;
  void erase(Entries::iterator at) {
    at->first->packed.store(false, std::memory_order_relaxed);
    entries_.erase(at);
  }

  std::mutex mutex_;
  Entries entries_;
};

PackedTable& packed_table() {
  static auto& instance = *new PackedTable;  // storages die after static objects
  return instance;
}

std::atomic<bool>& enabled() {
  static std::atomic<bool> on = [] {
    const char* value = std::getenv("BINADE_PACKED_WEIGHTS");
    const std::string_view name = value ? value : "on";
    check(name == "on" || name == "off", "BINADE_PACKED_WEIGHTS: got ", name,
          ", expected on or off");
    return name == "on";
  }();
  return on;
}

}  // namespace

void detail::drop_packing(Storage* storage) noexcept { packed_table().drop(storage); }

// True for a parameter: a leaf or, if frozen, a range that its arena holds too.
bool KeptPacking::is_kept(const Tensor& w) {
  const bool parameter =
      w.history() ? w.history()->leaf : w.handle()->storage->parent && !w.handle().unique();
  return parameter && w.device().is_cpu() && packed_weights();
}

const std::byte* KeptPacking::get(const kernels::PackingFormat& format,
                                  const std::function<void(std::byte*)>& fill) {
  const View& view = *weight_;
  Storage* storage = weight_->handle()->storage.get();
  const size_t bytes = static_cast<size_t>(view.numel) * size_of(view.dtype);
  if (storage->exposed.load(std::memory_order_relaxed)) {
    detail::drop_packing(storage);
    return nullptr;
  }
  if (format.bytes > bytes) {
    return nullptr;
  }
  std::shared_ptr<PackedBuffer> mine;
  try {
    held_ = packed_table().find(
        storage, {view.data, view.dtype, view.sizes, view.strides, weight_->version(), format},
        mine);
  } catch (const OutOfMemory&) {
    return nullptr;  // the product itself may have enough
  }
  if (!mine) {
    return held_ ? held_->data : nullptr;
  }
  try {
    fill(mine->data);
  } catch (...) {
    detail::drop_packing(storage);
    throw;
  }
  packed_table().set_ready(storage, mine);
  held_ = std::move(mine);
  return held_->data;
}

PackedWeightStats packed_weight_stats() { return packed_table().stats(); }

bool packed_weights() { return enabled().load(std::memory_order_relaxed); }

void set_packed_weights(bool on) {
  enabled().store(on, std::memory_order_relaxed);
  if (!on) {
    packed_table().drop_all();
  }
}

}  // namespace binade
