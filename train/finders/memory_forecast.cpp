#include <binade/core/device/device_memory.h>
#include <binade/core/device/memory.h>
#include <binade/core/device/memory_listener.h>
#include <binade/core/observe/byte_text.h>
#include <binade/core/observe/label.h>
#include <binade/core/observe/memory_tracker.h>
#include <binade/train/finders/memory_forecast.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <thread>
#include <unordered_map>
#include <utility>

namespace binade::train {
namespace {

constexpr int64_t kMostBatch = int64_t{1} << 40;
// The probes, in units of MemoryModel::Measured::unit. They are large enough that workspaces of
// bounded size have stopped growing.
constexpr int64_t kSmallProbe = 2, kLargeProbe = 3;

// A block of a measured step: its size at the smaller and the larger probe.
struct StepBlock {
  uint32_t label = 0;
  double small = 0, large = 0;  // bytes asked for
};

struct StepEvent {
  enum Kind : uint8_t { allocate, release, backward, others } kind = allocate;
  size_t block = 0;  // index of the step's blocks; others: bytes that other threads hold now
};

// The blocks of one step of one thread, in their order. Other threads hold workspaces meanwhile:
// their order is not fixed, so only the sum is kept.
class StepRecorder final : public MemoryListener {
 public:
  explicit StepRecorder(Device device) : device_(device) { add_memory_listener(*this); }
  ~StepRecorder() override { remove_memory_listener(*this); }
  StepRecorder(const StepRecorder&) = delete;
  StepRecorder& operator=(const StepRecorder&) = delete;

  void allocated(Device device, const void* block, size_t asked, size_t bytes) noexcept override {
    if (device != device_) {
      return;
    }
    if (std::this_thread::get_id() == thread_) {
      live_[block] = blocks.size();
      events.push_back({StepEvent::allocate, blocks.size()});
      blocks.push_back({binade::detail::thread_state.label, 0, static_cast<double>(asked)});
    } else {
      others_[block] = bytes;
      note_others(other_bytes_ + bytes);
    }
  }
  void released(Device device, const void* block) noexcept override {
    if (device != device_) {
      return;
    }
    if (const auto found = live_.find(block); found != live_.end()) {
      events.push_back({StepEvent::release, found->second});
      live_.erase(found);
    } else if (const auto other = others_.find(block); other != others_.end()) {
      note_others(other_bytes_ - other->second);
      others_.erase(other);
    }
  }
  void refused(Device /*device*/, size_t /*asked*/) noexcept override {}

  // Other threads hold batches that a loader prepares; the step does not count them.
  size_t kept_by_others() const { return other_bytes_; }

  std::vector<StepBlock> blocks;
  std::vector<StepEvent> events;

 private:
  void note_others(size_t bytes) {
    other_bytes_ = bytes;
    events.push_back({StepEvent::others, bytes});
  }

  Device device_;
  std::thread::id thread_ = std::this_thread::get_id();
  std::unordered_map<const void*, size_t> live_;    // index of the block
  std::unordered_map<const void*, size_t> others_;  // bytes
  size_t other_bytes_ = 0;
};

int64_t allocated_now(Device device) {
  if (device.is_cpu()) {
    return memory_stats().allocated;
  }
  synchronize(device);
  return memory_stats(device).allocated;
}

// True if two blocks of the probes can be the same one: the labels agree, and the size grew by a
// factor from 1 to that of the probes.
bool may_be_same(const StepBlock& small, const StepBlock& large) {
  return small.label == large.label && small.large <= large.large &&
         large.large * kSmallProbe <=
             small.large * kLargeProbe + binade::detail::kSmallBytes * kLargeProbe;
}

// The size at the smaller probe of a block that only the larger probe has. Below 1 KiB it was not
// recorded, and counts as proportional to the batch; else it is a workspace of the same size.
double unseen_size(const StepBlock& large) {
  const double proportional = large.large * kSmallProbe / kLargeProbe;
  return proportional <= binade::detail::kSmallBytes ? proportional : large.large;
}

// Sets the sizes at the smaller probe: the longest common subsequence of the two steps.
void match_blocks(const std::vector<StepBlock>& small, std::vector<StepBlock>& large) {
  const size_t n = small.size(), m = large.size();
  size_t prefix = 0;
  while (prefix < std::min(n, m) && may_be_same(small[prefix], large[prefix])) {
    large[prefix].small = small[prefix].large;
    ++prefix;
  }
  if (prefix == n && prefix == m) {
    return;
  }
  const size_t rows = n - prefix, columns = m - prefix;
  std::vector<uint32_t> length((rows + 1) * (columns + 1));
  const auto at = [&](size_t i, size_t k) -> uint32_t& { return length[i * (columns + 1) + k]; };
  for (size_t i = rows; i-- > 0;) {
    for (size_t k = columns; k-- > 0;) {
      const uint32_t matched =
          may_be_same(small[prefix + i], large[prefix + k]) ? at(i + 1, k + 1) + 1 : 0;
      at(i, k) = std::max({matched, at(i + 1, k), at(i, k + 1)});
    }
  }
  for (size_t i = 0, k = 0; k < columns;) {
    const bool same = i < rows && may_be_same(small[prefix + i], large[prefix + k]);
    if (same && at(i, k) == at(i + 1, k + 1) + 1) {
      large[prefix + k++].small = small[prefix + i++].large;
    } else if (i < rows && at(i + 1, k) >= at(i, k + 1)) {
      ++i;
    } else {
      large[prefix + k].small = unseen_size(large[prefix + k]);
      ++k;
    }
  }
}

// One step, with a mark where backward begins; recorded from the making of the batch to its end.
void record_step(const FinderParts& parts, const BatchMaker& batches, int64_t size,
                 StepRecorder& recorder) {
  FinderParts marked = parts;
  marked.step = [&](nn::Module& model, const data::Batch& batch) -> StepOutput {
    StepOutput output = parts.step ? parts.step(model, batch) : classification_step(model, batch);
    recorder.events.push_back({StepEvent::backward, 0});
    return output;
  };
  const data::Batch batch = batches.make(size).to(parts.optimizer.device());
  train_step(marked, batch);
}

}  // namespace

StateBytes state_bytes(nn::Module& model, const optim::Optimizer* optimizer) {
  StateBytes bytes;
  const auto size = [](const Tensor& t) {
    return t.defined() ? t.numel() * static_cast<int64_t>(size_of(t.dtype())) : 0;
  };
  if (const auto arena = model.parameters().arena()) {
    for (const Arena::Segment& segment : arena->segments()) {
      bytes.weights += size(segment.values);
      bytes.gradients += segment.gradients.defined()
                             ? size(segment.gradients)
                             : segment.numel * static_cast<int64_t>(size_of(segment.dtype));
      bytes.masters += size(segment.masters);
    }
  }
  for (const auto& [name, buffer] : model.named_buffers()) {
    bytes.buffers += size(buffer);
  }
  bytes.moments = optimizer ? optimizer->state_bytes() : 0;
  return bytes;
}

std::string to_string(const StateBytes& bytes) {
  std::string words;
  for (const auto& [name, value] : {std::pair("weights", bytes.weights),
                                    {"gradients", bytes.gradients},
                                    {"masters", bytes.masters},
                                    {"moments", bytes.moments},
                                    {"buffers", bytes.buffers}}) {
    words += value > 0
                 ? text(words.empty() ? "" : ", ", name, " ", byte_text(static_cast<double>(value)))
                 : std::string();
  }
  return words;
}

std::string to_string(const MemoryForecast& f) {
  const auto bytes = [](int64_t value) { return byte_text(static_cast<double>(value)); };
  std::string words = text("a step of ", f.batch, " samples needs ", bytes(f.peak), ": ",
                           to_string(f.states), ", batch ", bytes(f.input), ", saved for backward ",
                           bytes(f.saved), ", workspace ", bytes(f.workspace));
  words += f.other > 0 ? text(", other tensors ", bytes(f.other)) : std::string();
  return words + (f.saved_by_module.empty() ? std::string()
                                            : "; saved by " + memory_words(f.saved_by_module));
}

struct MemoryModel::Measured {
  Device device;
  int64_t unit = 0;  // samples: the probes have kSmallProbe and kLargeProbe times as many
  StateBytes states;
  int64_t persistent = 0;  // allocated between steps, without the snapshot
  std::vector<StepBlock> blocks;
  std::vector<StepEvent> events;
  int64_t kept_by_others = 0;
  size_t input_blocks = 0;  // the first ones are the batch

  int64_t bytes_of(size_t block, int64_t batch) const {
    const StepBlock& b = blocks[block];
    const double slope =
        (b.large - b.small) / static_cast<double>((kLargeProbe - kSmallProbe) * unit);
    const double asked = b.large + slope * static_cast<double>(batch - kLargeProbe * unit);
    return static_cast<int64_t>(
        allocated_bytes(device, static_cast<size_t>(std::max(std::llround(asked), 0LL))));
  }
};

MemoryModel::MemoryModel(std::unique_ptr<Measured> measured) : measured_(std::move(measured)) {}
MemoryModel::~MemoryModel() = default;
MemoryModel::MemoryModel(MemoryModel&&) noexcept = default;
MemoryModel& MemoryModel::operator=(MemoryModel&&) noexcept = default;

MemoryForecast MemoryModel::at(int64_t batch) const {
  check(batch > 0, "memory forecast: got a batch of ", batch, " samples, expected at least 1");
  const Measured& m = *measured_;
  MemoryForecast f{.batch = batch, .states = m.states};
  std::vector<int64_t> size(m.blocks.size());
  for (size_t i = 0; i < size.size(); ++i) {
    size[i] = m.bytes_of(i, batch);
    f.input += i < m.input_blocks ? size[i] : 0;
  }
  int64_t live = 0, most = 0, others = 0;
  std::vector<bool> is_live(size.size());
  for (const StepEvent& event : m.events) {
    if (event.kind == StepEvent::backward) {
      std::map<uint32_t, int64_t> saved;
      for (size_t i = m.input_blocks; i < size.size(); ++i) {
        saved[m.blocks[i].label] += is_live[i] ? size[i] : 0;
      }
      for (const auto& [label, bytes] : saved) {
        f.saved += bytes;
        if (bytes > 0) {
          f.saved_by_module.push_back({label_text(label), bytes});
        }
      }
      continue;
    }
    if (event.kind == StepEvent::others) {
      others = std::max<int64_t>(static_cast<int64_t>(event.block) - m.kept_by_others, 0);
      most = std::max(most, live + others);
      continue;
    }
    is_live[event.block] = event.kind == StepEvent::allocate;
    live += is_live[event.block] ? size[event.block] : -size[event.block];
    most = std::max(most, live + others);
  }
  std::stable_sort(f.saved_by_module.begin(), f.saved_by_module.end(),
                   [](const LabelMemory& a, const LabelMemory& b) { return a.bytes > b.bytes; });
  f.peak = m.persistent + most;
  f.other = std::max<int64_t>(m.persistent - m.states.total(), 0);
  f.workspace = std::max<int64_t>(most - f.input - f.saved, 0);
  return f;
}

int64_t MemoryModel::largest_batch(int64_t bytes) const {
  if (at(1).peak > bytes) {
    return 0;
  }
  int64_t good = 1, bad = 2;
  while (bad < kMostBatch && at(bad).peak <= bytes) {
    good = bad;
    bad *= 2;
  }
  while (bad - good > 1) {
    const int64_t middle = good + (bad - good) / 2;
    (at(middle).peak <= bytes ? good : bad) = middle;
  }
  return good;
}

MemoryModel measure_memory(const FinderParts& parts, const BatchMaker& batches, int64_t unit) {
  check(unit > 0, "memory forecast: got probes of ", unit, " samples, expected at least 1");
  auto measured = std::make_unique<MemoryModel::Measured>();
  const Device device = parts.optimizer.device();
  measured->device = device;
  measured->unit = unit;
  const int64_t before = allocated_now(device);
  StateSnapshot snapshot(parts);
  const int64_t copies = allocated_now(device) - before;
  parts.model.train();
  train_step(parts, batches.make(unit).to(device));  // allocates memory that stays
  std::vector<StepBlock> small;
  {
    StepRecorder recorder(device);
    record_step(parts, batches, kSmallProbe * unit, recorder);
    small = std::move(recorder.blocks);
  }
  measured->persistent = allocated_now(device) - copies;
  {
    StepRecorder recorder(device);
    (void)batches.make(kLargeProbe * unit).to(device);
    measured->input_blocks = recorder.blocks.size();
  }
  {
    StepRecorder recorder(device);
    record_step(parts, batches, kLargeProbe * unit, recorder);
    measured->kept_by_others = static_cast<int64_t>(recorder.kept_by_others());
    measured->blocks = std::move(recorder.blocks);
    measured->events = std::move(recorder.events);
  }
  match_blocks(small, measured->blocks);
  measured->states = state_bytes(parts.model, &parts.optimizer);
  return MemoryModel(std::move(measured));
}

}  // namespace binade::train
