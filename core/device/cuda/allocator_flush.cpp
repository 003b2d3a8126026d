// The slow paths of the caching allocator: returning memory, captures, and reports.
#include <binade/core/device/cuda/caching_allocator_internal.h>
#include <binade/core/device/memory_listener.h>
#include <binade/core/observe/label.h>
#include <binade/kernels/cuda/kernel_call.h>
#include <binade/kernels/cuda/runtime_api_internal.h>

#include <algorithm>

namespace binade {
namespace {

constexpr size_t kLabelsInErrors = 5;

std::string megabytes(int64_t bytes) {
  return text(static_cast<double>((bytes * 10) >> 20) / 10, " MiB");
}

}  // namespace

void CachingAllocator::flush() {
  std::lock_guard lock(mutex_);
  flush_locked();
}

void CachingAllocator::flush_locked() {
  if (capture_graph_ != 0) {
    return;  // the device cannot be waited for
  }
  ++stats_.flushes;
  note(MemoryEvent::flush, nullptr, 0, 0, nullptr);
  kernels::select_device(device_);
  kernels::check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  free_waiting();
  if (options_.poison) {  // which queues work
    kernels::check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  std::erase_if(pools_, [&](auto& entry) {
    Pool& pool = *entry.second;
    if (pool.key.graph == 0 || dropped_graphs_.contains(pool.key.graph)) {
      shrink(pool);
    }
    return pool.pieces.empty();
  });
}

void CachingAllocator::free_waiting() {
  for (Block* block : std::exchange(waiting_, {})) {
    spare_events_.insert(spare_events_.end(), block->events.begin(), block->events.end());
    block->events.clear();
    block->lost_event = false;
    poison(block);
    make_free(block);
  }
}

void CachingAllocator::shrink(Pool& pool) {
  std::erase_if(pool.pieces, [&](auto& piece) {
    trim_piece(pool, *piece);
    return !piece->first;
  });
}

// Returns the free end of a growable segment, or a plain segment of which nothing is in use.
void CachingAllocator::trim_piece(Pool& pool, Piece& piece) {
  Block* last = piece.last;
  if (!last || !last->free) {
    return;
  }
  Segment& segment = *piece.segment;
  const size_t before = segment.size();
  const auto used = static_cast<size_t>(last->data - segment.data());
  size_t after = before;
  if (segment.growable()) {
    const int64_t frees = segment.frees();
    segment.shrink(used);
    after = segment.size();
    stats_.device_frees += segment.frees() - frees;
  } else if (used == 0) {
    after = 0;
    ++stats_.device_frees;  // by the segment's destructor
  }
  if (after == before) {
    return;
  }
  pool.free.erase(last);
  pool.reserved -= before - after;
  stats_.reserved -= static_cast<int64_t>(before - after);
  note(MemoryEvent::shrink, segment.data() + after, before - after, 0, pool.key.stream);
  last->bytes -= before - after;
  if (last->bytes > 0) {
    pool.free.insert(last);
    return;
  }
  piece.last = last->before;
  (piece.last ? piece.last->after : piece.first) = nullptr;
  delete last;
}

void CachingAllocator::out_of_memory(size_t bytes, int error) {
  const uint32_t label = detail::thread_state.label;
  note(MemoryEvent::out_of_memory, nullptr, bytes, label, kernels::current_stream(device_));
  size_t free = 0, total = 0, largest = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) {
    cudaGetLastError();
  }
  int64_t waiting = 0;
  for (const auto& [key, pool] : pools_) {
    if (!pool->free.empty()) {
      largest = std::max(largest, (*pool->free.rbegin())->bytes);
    }
  }
  for (const Block* block : waiting_) {
    waiting += static_cast<int64_t>(block->bytes);
  }
  const auto* call = kernels::KernelCall::current();
  std::string message =
      text(call ? text(call->name(), ": ") : std::string(), "out of memory on ", device_,
           ": got a request for ", bytes, " bytes (", megabytes(static_cast<int64_t>(bytes)), ")",
           label ? text(" in ", label_text(label)) : std::string(), ", with ",
           megabytes(stats_.allocated), " in use, ", megabytes(stats_.reserved),
           " reserved (largest free block ", megabytes(static_cast<int64_t>(largest)), ", ",
           megabytes(waiting), " waiting for streams) and ", megabytes(static_cast<int64_t>(free)),
           " of ", megabytes(static_cast<int64_t>(total)), " free on the device",
           error == 0 ? " (failure injected)" : "", "; held by");
  const std::vector<LabelMemory> holders = by_label_locked();
  for (size_t i = 0; i < std::min(holders.size(), kLabelsInErrors); ++i) {
    message += text(i ? ", " : " ", holders[i].label.empty() ? "no module" : holders[i].label, " ",
                    megabytes(holders[i].bytes));
  }
  message += text(holders.empty() ? " nobody" : "",
                  "; use a smaller batch, accumulate gradients, or free tensors");
  detail::tell_refused(device_, bytes);
  throw OutOfMemory(message);
}

void CachingAllocator::begin_capture(uint64_t graph, Stream origin) {
  std::lock_guard lock(mutex_);
  check(capture_graph_ == 0, "graph capture: got a second capture on ", device_,
        ", expected the first to be over");
  capture_graph_ = graph;
  capture_origin_ = origin;
  capture_thread_ = std::this_thread::get_id();
}

// Blocks of the graph that other streams used become free now: no work on them is queued.
void CachingAllocator::end_capture() {
  std::lock_guard lock(mutex_);
  const uint64_t graph = std::exchange(capture_graph_, 0);
  std::erase_if(waiting_, [&](Block* block) {
    const bool over = block->piece->pool->key.graph == graph && block->events.empty();
    if (over) {
      block->lost_event = false;
      make_free(block);
    }
    return over;
  });
}

void CachingAllocator::drop_graph(uint64_t graph) noexcept {
  std::lock_guard lock(mutex_);
  dropped_graphs_.insert(graph);
  try {
    flush_locked();
  } catch (const std::exception&) {  // from failed work; a later flush returns the memory
    cudaGetLastError();
  }
}

DeviceMemoryStats CachingAllocator::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

void CachingAllocator::reset_peak() {
  std::lock_guard lock(mutex_);
  stats_.peak = stats_.allocated;
}

std::vector<LabelMemory> CachingAllocator::by_label() const {
  std::lock_guard lock(mutex_);
  return by_label_locked();
}

std::vector<LabelMemory> CachingAllocator::by_label_locked() const {
  std::vector<LabelMemory> held;
  for (size_t i = 0; i < label_bytes_.size(); ++i) {
    if (label_bytes_[i] > 0) {
      held.push_back({label_text(static_cast<uint32_t>(i)), label_bytes_[i]});
    }
  }
  std::ranges::sort(held, std::greater{}, &LabelMemory::bytes);
  return held;
}

std::vector<MemoryEvent> CachingAllocator::timeline() const {
  std::lock_guard lock(mutex_);
  std::vector<MemoryEvent> kept;
  const size_t count = std::min(next_event_, events_.size());
  for (size_t i = next_event_ - count; i < next_event_; ++i) {
    kept.push_back(events_[i % events_.size()]);
  }
  return kept;
}

void CachingAllocator::fail_allocation(int64_t n) {
  std::lock_guard lock(mutex_);
  fail_in_ = n;
}

bool CachingAllocator::consistent() const {
  std::lock_guard lock(mutex_);
  size_t free_blocks = 0, listed = 0, bytes = 0;
  for (const auto& [key, pool] : pools_) {
    listed += pool->free.size();
    for (const auto& piece : pool->pieces) {
      const std::byte* at = piece->segment->data();
      const Block* before = nullptr;
      for (const Block* block = piece->first; block; block = block->after) {
        if (block->data != at || block->before != before || block->bytes == 0 ||
            (block->free && (block->live || (before && before->free) ||
                             !pool->free.contains(const_cast<Block*>(block))))) {
          return false;
        }
        free_blocks += block->free;
        at += block->bytes;
        before = block;
      }
      if (piece->last != before || at != piece->segment->data() + piece->segment->size()) {
        return false;
      }
      bytes += piece->segment->size();
    }
  }
  return free_blocks == listed && static_cast<int64_t>(bytes) == stats_.reserved;
}

}  // namespace binade
