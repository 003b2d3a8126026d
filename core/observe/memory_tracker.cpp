#include <binade/core/observe/byte_text.h>
#include <binade/core/observe/label.h>
#include <binade/core/observe/memory_tracker.h>
#include <binade/kernels/base/error.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace binade {
namespace {

struct LiveBlock {
  Device device;
  int64_t bytes;
  uint32_t label;
  int64_t step;
};

std::vector<LabelMemory> sorted(const std::vector<int64_t>& bytes) {
  std::vector<LabelMemory> labels;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] > 0) {
      labels.push_back({label_text(static_cast<uint32_t>(i)), bytes[i]});
    }
  }
  std::stable_sort(labels.begin(), labels.end(),
                   [](const LabelMemory& a, const LabelMemory& b) { return a.bytes > b.bytes; });
  return labels;
}

void add(std::vector<int64_t>& bytes, uint32_t label, int64_t change) {
  if (bytes.size() <= label) {
    bytes.resize(label + 1);
  }
  bytes[label] += change;
}

}  // namespace

struct MemoryTracker::State {
  mutable std::mutex mutex;  // of all that follows: the listener's own lock ends with each call
  std::unordered_map<const void*, LiveBlock> live;
  std::vector<int64_t> by_label;  // live bytes
  int64_t total = 0, peak = 0;
  std::vector<int64_t> at_peak;
  std::optional<MemoryRefusal> refusal;
  int64_t step = 0;
  // By label, at the ends of the last steps: bytes of blocks that are older than two steps.
  std::deque<std::vector<int64_t>> old_bytes;

  std::vector<int64_t> old_by_label() const {
    std::vector<int64_t> bytes;
    for (const auto& [block, entry] : live) {
      if (entry.step + 2 <= step && entry.step > 0) {
        add(bytes, entry.label, entry.bytes);
      }
    }
    return bytes;
  }
};

MemoryTracker::MemoryTracker() : state_(std::make_unique<State>()) { add_memory_listener(*this); }
MemoryTracker::~MemoryTracker() { remove_memory_listener(*this); }

void MemoryTracker::allocated(Device device, const void* block, size_t /*asked*/,
                              size_t bytes) noexcept {
  const std::lock_guard lock(state_->mutex);
  State& s = *state_;
  try {
    const LiveBlock entry{device, static_cast<int64_t>(bytes), detail::thread_state.label, s.step};
    s.live.insert_or_assign(block, entry);
    add(s.by_label, entry.label, entry.bytes);
    s.total += entry.bytes;
    constexpr int64_t kShare = 50;  // a new peak counts if it is 2% above the one before
    if (s.total > s.peak + s.peak / kShare) {
      s.peak = s.total;
      s.at_peak = s.by_label;
    }
  } catch (const std::bad_alloc&) {
    // The block is not tracked: the host has no memory for the entry.
  }
}

void MemoryTracker::released(Device /*device*/, const void* block) noexcept {
  const std::lock_guard lock(state_->mutex);
  State& s = *state_;
  const auto found = s.live.find(block);
  if (found != s.live.end()) {
    s.by_label[found->second.label] -= found->second.bytes;
    s.total -= found->second.bytes;
    s.live.erase(found);
  }
}

void MemoryTracker::refused(Device device, size_t asked) noexcept {
  const std::lock_guard lock(state_->mutex);
  try {
    std::vector<int64_t> bytes;
    for (const auto& [block, entry] : state_->live) {
      if (entry.device == device) {
        add(bytes, entry.label, entry.bytes);
      }
    }
    state_->refusal = MemoryRefusal{.device = device,
                                    .asked = static_cast<int64_t>(asked),
                                    .label = label_text(detail::thread_state.label),
                                    .step = state_->step,
                                    .holders = sorted(bytes)};
  } catch (const std::bad_alloc&) {
    state_->refusal = std::nullopt;
  }
}

std::vector<LabelMemory> MemoryTracker::by_label() const {
  const std::lock_guard lock(state_->mutex);
  return sorted(state_->by_label);
}

std::vector<LabelMemory> MemoryTracker::take_peak() {
  const std::lock_guard lock(state_->mutex);
  std::vector<LabelMemory> labels = sorted(state_->at_peak);
  state_->peak = state_->total;
  state_->at_peak = state_->by_label;
  return labels;
}

std::optional<MemoryRefusal> MemoryTracker::refusal() const {
  const std::lock_guard lock(state_->mutex);
  return state_->refusal;
}

int64_t MemoryTracker::steps() const {
  const std::lock_guard lock(state_->mutex);
  return state_->step;
}

void MemoryTracker::end_step() {
  const std::lock_guard lock(state_->mutex);
  State& s = *state_;
  ++s.step;
  s.old_bytes.push_back(s.old_by_label());
  if (s.old_bytes.size() > static_cast<size_t>(kLeakSteps) + 1) {
    s.old_bytes.pop_front();
  }
}

std::vector<MemoryLeak> MemoryTracker::leaks() const {
  const std::lock_guard lock(state_->mutex);
  const State& s = *state_;
  if (s.old_bytes.size() <= static_cast<size_t>(kLeakSteps)) {
    return {};
  }
  const auto bytes_at = [&](size_t sample, size_t label) {
    const auto& bytes = s.old_bytes[sample];
    return label < bytes.size() ? bytes[label] : 0;
  };
  std::map<uint32_t, MemoryLeak> found;
  for (size_t label = 0; label < s.by_label.size(); ++label) {
    bool grows = true;
    for (size_t i = 1; i < s.old_bytes.size(); ++i) {
      grows = grows && bytes_at(i, label) > bytes_at(i - 1, label);
    }
    if (grows) {
      const int64_t growth = bytes_at(s.old_bytes.size() - 1, label) - bytes_at(0, label);
      found[static_cast<uint32_t>(label)] = {.label = label_text(static_cast<uint32_t>(label)),
                                             .bytes_per_step = growth / kLeakSteps,
                                             .first_step = s.step};
    }
  }
  for (const auto& [block, entry] : s.live) {
    const auto leak = found.find(entry.label);
    if (leak != found.end() && entry.step + 2 <= s.step && entry.step > 0) {
      leak->second.bytes += entry.bytes;
      ++leak->second.blocks;
      leak->second.first_step = std::min(leak->second.first_step, entry.step);
    }
  }
  std::vector<MemoryLeak> leaks;
  for (auto& [label, leak] : found) {
    leaks.push_back(std::move(leak));
  }
  std::stable_sort(leaks.begin(), leaks.end(), [](const MemoryLeak& a, const MemoryLeak& b) {
    return a.bytes_per_step > b.bytes_per_step;
  });
  return leaks;
}

std::string memory_words(const std::vector<LabelMemory>& holders, size_t most) {
  std::string words;
  int64_t rest = 0;
  for (size_t i = 0; i < holders.size(); ++i) {
    if (i < most) {
      words +=
          text(i ? ", " : "", holders[i].label.empty() ? "outside of modules" : holders[i].label,
               " ", byte_text(static_cast<double>(holders[i].bytes)));
    } else {
      rest += holders[i].bytes;
    }
  }
  return rest > 0 ? text(words, ", ", holders.size() - most, " more ",
                         byte_text(static_cast<double>(rest)))
                  : words;
}

std::string to_string(const MemoryLeak& leak) {
  return text(leak.label.empty() ? "outside of modules" : leak.label, ": ",
              byte_text(static_cast<double>(leak.bytes_per_step)), " more after each step, ",
              byte_text(static_cast<double>(leak.bytes)), " in ", leak.blocks,
              leak.blocks == 1 ? " block" : " blocks", " of earlier steps, the oldest of step ",
              leak.first_step,
              "; does something keep losses or outputs with their graph? Keep loss.item(), or "
              "detach()");
}

}  // namespace binade
