#include <binade/core/device/cuda/caching_allocator_internal.h>
#include <binade/core/device/memory.h>
#include <binade/core/device/memory_listener.h>
#include <binade/kernels/cuda/kernel_call.h>
#include <binade/kernels/cuda/relaxed_capture_internal.h>
#include <binade/kernels/cuda/runtime_api_internal.h>

#include <algorithm>
#include <chrono>

namespace binade {
namespace {

constexpr size_t kBlockStep = 512;
constexpr size_t kSmall = size_t{1} << 20;
constexpr size_t kTimeline = 8192;

size_t round_up(size_t bytes, size_t step) { return (bytes + step - 1) / step * step; }

cudaStream_t raw(kernels::StreamHandle stream) { return static_cast<cudaStream_t>(stream); }

}  // namespace

CachingAllocator::CachingAllocator(Device device, AllocatorOptions options)
    : device_(device), options_(options), events_(kTimeline) {
  options_.growable = options.growable && Segment::can_grow(device);
  stats_.growable = options_.growable;
}

CachingAllocator::~CachingAllocator() {
  for (void* event : spare_events_) {
    cudaEventDestroy(static_cast<cudaEvent_t>(event));
  }
  for (auto& [key, pool] : pools_) {
    for (auto& piece : pool->pieces) {
      for (Block *block = piece->first, *after = nullptr; block; block = after) {
        after = block->after;
        delete block;
      }
    }
  }
}

bool CachingAllocator::capturing_here() const {
  return capture_graph_ != 0 && capture_thread_ == std::this_thread::get_id();
}

CachingAllocator::Pool& CachingAllocator::pool_at(const Key& key) {
  auto& pool = pools_[key];
  if (!pool) {
    pool = std::make_unique<Pool>();
    pool->key = key;
  }
  return *pool;
}

void* CachingAllocator::allocate(size_t bytes) {
  std::lock_guard lock(mutex_);
  kernels::select_device(device_);
  const size_t rounded = round_up(std::max<size_t>(bytes, 1), kBlockStep);
  ++stats_.requests;
  if (fail_in_ > 0 && --fail_in_ == 0) {
    flush_locked();
    out_of_memory(bytes, 0);
  }
  poll_events();
  const Key key{capturing_here() ? capture_graph_ : 0, kernels::current_stream(device_),
                rounded <= kSmall};
  Pool& pool = pool_at(key);
  Block* block = take(pool, rounded);
  if (!block) {
    block = grow(pool, rounded);
  }
  block->live = true;
  block->label = detail::thread_state.label;
  live_[block->data] = block;
  if (label_bytes_.size() <= block->label) {
    label_bytes_.resize(block->label + 1);
  }
  label_bytes_[block->label] += static_cast<int64_t>(block->bytes);
  stats_.allocated += static_cast<int64_t>(block->bytes);
  stats_.peak = std::max(stats_.peak, stats_.allocated);
  note(MemoryEvent::allocate, block->data, block->bytes, block->label, key.stream);
  if (detail::has_memory_listener()) {
    detail::tell_allocated(device_, block->data, bytes, block->bytes);
  }
  return block->data;
}

// Removes the best free block from the pool and splits it to size.
CachingAllocator::Block* CachingAllocator::take(Pool& pool, size_t bytes) {
  Block wanted;
  wanted.bytes = bytes;
  const auto found = pool.free.lower_bound(&wanted);
  if (found == pool.free.end()) {
    return nullptr;
  }
  Block* block = *found;
  if (block->bytes > bytes) {
    auto rest = std::make_unique<Block>();
    rest->data = block->data + bytes;
    rest->bytes = block->bytes - bytes;
    rest->piece = block->piece;
    rest->before = block;
    rest->after = block->after;
    rest->free = true;
    pool.free.insert(rest.get());
    pool.free.erase(block);
    (block->after ? block->after->before : block->piece->last) = rest.get();
    block->after = rest.release();
    block->bytes = bytes;
  } else {
    pool.free.erase(block);
  }
  block->free = false;
  return block;
}

void CachingAllocator::release(void* data) noexcept {
  std::lock_guard lock(mutex_);
  const auto found = live_.find(data);
  if (found == live_.end()) {
    return;
  }
  Block* block = found->second;
  live_.erase(found);
  block->live = false;
  const Stream home = block->piece->pool->key.stream;
  stats_.allocated -= static_cast<int64_t>(block->bytes);
  label_bytes_[block->label] -= static_cast<int64_t>(block->bytes);
  note(MemoryEvent::release, data, block->bytes, block->label, home);
  if (detail::has_memory_listener()) {
    detail::tell_released(device_, data);
  }
  const Stream current = kernels::current_stream(device_);
  if (current != home && std::ranges::count(block->users, current) == 0) {
    block->users.push_back(current);
  }
  try {
    kernels::select_device(device_);
    hold_for_events(block);
  } catch (const Error&) {  // of the runtime: blocks that may be in use wait for a flush
    block->lost_event = true;
    waiting_.push_back(block);
  }
}

void CachingAllocator::record_use(void* data, Stream stream) {
  std::lock_guard lock(mutex_);
  const auto found = live_.find(data);
  check(found != live_.end(), "record_use: got a pointer that is no live block of ", device_);
  auto& users = found->second->users;
  if (stream != found->second->piece->pool->key.stream && std::ranges::count(users, stream) == 0) {
    users.push_back(stream);
  }
}

bool CachingAllocator::is_capturing(Stream stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(raw(stream), &status) != cudaSuccess) {
    cudaGetLastError();
  }
  return status != cudaStreamCaptureStatusNone;
}

// Frees the block at once, or after the queued work of the other streams that used it. Captured
// work does not run now: a block of the graph waits for the end of the capture; other blocks wait
// for no event of a captured stream.
void CachingAllocator::hold_for_events(Block* block) {
  const bool of_graph = block->piece->pool->key.graph != 0;
  for (Stream stream : std::exchange(block->users, {})) {
    if (capture_graph_ != 0 && is_capturing(stream)) {
      block->lost_event |= of_graph;
      continue;
    }
    void* event = take_event();
    if (!event || cudaEventRecord(static_cast<cudaEvent_t>(event), raw(stream)) != cudaSuccess) {
      cudaGetLastError();
      block->lost_event = true;
      if (event) {
        spare_events_.push_back(event);
      }
      continue;
    }
    block->events.push_back(event);
  }
  if (block->events.empty() && !block->lost_event) {
    poison(block);
    make_free(block);
  } else {
    waiting_.push_back(block);
  }
}

void* CachingAllocator::take_event() {
  if (spare_events_.empty()) {
    cudaEvent_t event = nullptr;
    if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess) {
      return nullptr;
    }
    spare_events_.push_back(event);
  }
  void* event = spare_events_.back();
  spare_events_.pop_back();
  return event;
}

void CachingAllocator::poll_events() {
  if (waiting_.empty() || capture_graph_ != 0) {
    return;
  }
  const kernels::RelaxedCapture relaxed;
  for (size_t i = 0; i < waiting_.size();) {
    Block* block = waiting_[i];
    while (!block->events.empty() &&
           cudaEventQuery(static_cast<cudaEvent_t>(block->events.back())) == cudaSuccess) {
      spare_events_.push_back(block->events.back());
      block->events.pop_back();
    }
    if (block->events.empty() && !block->lost_event) {
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
      poison(block);
      make_free(block);
    } else {
      ++i;
    }
  }
}

CachingAllocator::Block* CachingAllocator::merge(Block* left, Block* right) {
  left->bytes += right->bytes;
  left->after = right->after;
  (right->after ? right->after->before : right->piece->last) = left;
  delete right;
  return left;
}

// The fill is queued on the home stream, so it runs after all reads there. Blocks of a graph are
// filled while the graph is captured, and so at every replay, but only on the stream where the
// capture began: the others may have joined it already.
void CachingAllocator::poison(const Block* block) {
  const Key& key = block->piece->pool->key;
  const bool in_order = key.graph == 0
                            ? capture_graph_ == 0 || !is_capturing(key.stream)
                            : key.graph == capture_graph_ && key.stream == capture_origin_;
  constexpr int kNan = 0xFF;
  if (options_.poison && in_order &&
      cudaMemsetAsync(block->data, kNan, block->bytes, raw(key.stream)) != cudaSuccess) {
    cudaGetLastError();
  }
}

void CachingAllocator::make_free(Block* block) {
  Pool& pool = *block->piece->pool;
  if (Block* before = block->before; before && before->free) {
    pool.free.erase(before);
    block = merge(before, block);
  }
  if (Block* after = block->after; after && after->free) {
    pool.free.erase(after);
    block = merge(block, after);
  }
  block->free = true;
  pool.free.insert(block);
}

// Appends new memory to a segment: it extends the last block if that is free.
void CachingAllocator::append(Piece& piece, size_t bytes) {
  auto block = std::make_unique<Block>();
  block->bytes = bytes;
  block->piece = &piece;
  block->before = piece.last;
  block->data = piece.last ? piece.last->data + piece.last->bytes : piece.segment->data();
  (piece.last ? piece.last->after : piece.first) = block.get();
  piece.last = block.get();
  piece.pool->reserved += bytes;
  stats_.reserved += static_cast<int64_t>(bytes);
  note(MemoryEvent::grow, block->data, bytes, 0, piece.pool->key.stream);
  make_free(block.release());
}

// A new segment of the pool; null, and the error, if there is no memory.
CachingAllocator::Piece* CachingAllocator::add_piece(Pool& pool, bool growable, size_t bytes,
                                                     int& error) {
  auto segment = Segment::make(device_, growable, bytes, error);
  if (!segment) {
    return nullptr;
  }
  stats_.device_allocations += segment->allocations();
  pool.pieces.push_back(std::make_unique<Piece>());
  Piece& piece = *pool.pieces.back();
  piece.segment = std::move(segment);
  piece.pool = &pool;
  return &piece;
}

// Takes enough memory from the device for `bytes`, and at least `ahead`, in a segment of its own.
int CachingAllocator::grow_plain(Pool& pool, size_t bytes, size_t ahead) {
  const kernels::RelaxedCapture relaxed;
  const size_t whole = round_up(std::max(bytes, ahead), Segment::kGranularity);
  int error = 0;
  if (Piece* piece = add_piece(pool, false, whole, error)) {
    append(*piece, whole);
  }
  return error;
}

// The same at the end of the pool's growable segment. If the driver refuses for another reason than
// lack of memory, although the probe at the start passed, takes plain memory.
int CachingAllocator::grow_by(Pool& pool, size_t bytes, size_t ahead) {
  if (!options_.growable) {
    return grow_plain(pool, bytes, ahead);
  }
  const kernels::RelaxedCapture relaxed;
  int error = 0;
  const auto found = std::ranges::find_if(
      pool.pieces, [](const auto& piece) { return piece->segment->growable(); });
  Piece* piece = found != pool.pieces.end() ? found->get() : add_piece(pool, true, 0, error);
  if (piece) {
    const size_t at_end = piece->last && piece->last->free ? piece->last->bytes : 0;
    const size_t growth =
        round_up(std::max(bytes - std::min(at_end, bytes), ahead), Segment::kGranularity);
    error = piece->segment->grow(growth);
    if (error == 0) {
      ++stats_.device_allocations;
      append(*piece, growth);
      return 0;
    }
  }
  return error == cudaErrorMemoryAllocation ? error : grow_plain(pool, bytes, ahead);
}

// Tries to grow by a sixteenth of the held memory, so that a slowly growing demand does not call
// the device every time; then by the requested bytes only; then flushes and tries again, at last
// with plain memory.
CachingAllocator::Block* CachingAllocator::grow(Pool& pool, size_t bytes) {
  int error = grow_by(pool, bytes, pool.reserved / 16);
  if (error == cudaErrorMemoryAllocation) {
    error = grow_by(pool, bytes, 0);
  }
  if (error == cudaErrorMemoryAllocation) {
    const Key key = pool.key;
    flush_locked();
    Pool& same = pool_at(key);  // the flush may have dropped it
    if (Block* block = take(same, bytes)) {
      return block;
    }
    error = grow_by(same, bytes, 0);
    if (error == cudaErrorMemoryAllocation && options_.growable) {
      error = grow_plain(same, bytes, 0);
    }
    if (error == cudaErrorMemoryAllocation) {
      out_of_memory(bytes, error);
    }
    kernels::check_cuda(error, "device memory allocation");
    return take(same, bytes);
  }
  kernels::check_cuda(error, "device memory allocation");
  return take(pool, bytes);
}

void CachingAllocator::note(MemoryEvent::Kind kind, const void* at, size_t bytes, uint32_t label,
                            Stream stream) {
  MemoryEvent& event = events_[next_event_++ % kTimeline];
  event.kind = kind;
  event.label = label;
  event.time_ns = std::chrono::steady_clock::now().time_since_epoch().count();
  event.address = reinterpret_cast<uint64_t>(at);
  event.bytes = static_cast<int64_t>(bytes);
  event.stream = stream;
}

}  // namespace binade
