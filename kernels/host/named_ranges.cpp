// The table of named ranges, and the names of elements.
#include <binade/kernels/host/ranges_internal.h>

namespace binade::kernels::host {

std::vector<RangeState>& range_table() {
  static auto& table = *new std::vector<RangeState>;
  return table;
}

RangeState* find_range(const void* address) {
  std::vector<RangeState>& table = range_table();
  const auto at = reinterpret_cast<uintptr_t>(address);
  const auto after =
      std::upper_bound(table.begin(), table.end(), at,
                       [](uintptr_t value, const RangeState& state) { return value < state.low; });
  if (after == table.begin()) {
    return nullptr;
  }
  RangeState& state = *(after - 1);
  return at < state.high ? &state : nullptr;
}

namespace {

// Calls f(word, mask) for the words with the bits [first, first + count), until it says false.
template <class F>
bool for_words(uintptr_t first, size_t count, F f) {
  while (count > 0) {
    const size_t shift = first % 64, here = std::min(count, 64 - shift);
    if (!f(first / 64, ~uint64_t{0} >> (64 - here) << shift)) {
      return false;
    }
    first += here;
    count -= here;
  }
  return true;
}

}  // namespace

bool RangeState::all_written(uintptr_t address, size_t bytes) const {
  return for_words(address - begin, bytes,
                   [&](size_t word, uint64_t mask) { return (written[word] & mask) == mask; });
}

void RangeState::mark(uintptr_t address, size_t bytes, bool is_written) {
  if (written.empty()) {
    return;
  }
  if (is_written && bytes == range.bytes) {
    written.clear();
    return;
  }
  for_words(address - begin, bytes, [&](size_t word, uint64_t mask) {
    written[word] = is_written ? written[word] | mask : written[word] & ~mask;
    return true;
  });
}

void name_range(const NamedRange& range) {
  RangeState state;
  state.range = range;
  state.begin = reinterpret_cast<uintptr_t>(range.begin);
  state.end = state.begin + range.bytes;
  state.low = state.begin - range.guard;
  state.high = state.end + range.guard;
  const size_t element = std::max<size_t>(range.element_bytes, 1);
  state.range.element_bytes = element;
  state.row_bytes = range.row_elements * static_cast<int64_t>(element);
  state.pitch_bytes = range.row_pitch * static_cast<int64_t>(element);
  std::vector<RangeState>& table = range_table();
  const auto after = std::find_if(table.begin(), table.end(), [&](const RangeState& other) {
    return other.begin >= state.begin;
  });
  const auto refuse = [&](const RangeState& other) {
    check(state.high <= other.low || other.high <= state.low, "name_range: \"", range.name,
          "\" overlaps \"", other.range.name, "\", with the guards of both");
  };
  if (after != table.end()) {
    refuse(*after);
  }
  if (after != table.begin()) {
    refuse(*(after - 1));
  }
  check(state.high > state.low, "name_range: \"", range.name, "\" has no bytes and no guard");
  if (range.unwritten) {
    state.written.assign((range.bytes + 63) / 64, 0);
  }
  recent_range = nullptr;
  table.insert(after, std::move(state));
}

void forget_range(const void* begin) {
  std::vector<RangeState>& table = range_table();
  recent_range = nullptr;
  std::erase_if(table, [&](const RangeState& state) { return state.range.begin == begin; });
}
void forget_all_ranges() {
  recent_range = nullptr;
  range_table().clear();
}

std::vector<NamedRange> named_ranges() {
  std::vector<NamedRange> all;
  for (const RangeState& state : range_table()) {
    all.push_back(state.range);
  }
  return all;
}

namespace {

// Marks the part of the bytes that lies in ranges.
void mark_bytes(const void* begin, size_t bytes, bool is_written) {
  const auto from = reinterpret_cast<uintptr_t>(begin);
  for (RangeState& state : range_table()) {
    const uintptr_t first = std::max(from, state.begin), last = std::min(from + bytes, state.end);
    if (first < last) {
      if (!is_written && state.written.empty()) {
        state.written.assign((state.range.bytes + 63) / 64, ~uint64_t{0});
      }
      state.mark(first, last - first, is_written);
    }
  }
}

}  // namespace

void mark_written(const void* begin, size_t bytes) { mark_bytes(begin, bytes, true); }
void mark_unwritten(const void* begin, size_t bytes) { mark_bytes(begin, bytes, false); }

// Elements --------------------------------------------------------------------------------------

namespace {

int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

}  // namespace

FoundElement element_in(const RangeState& state, const void* address) {
  const NamedRange& range = state.range;
  FoundElement found;
  found.space = range.space;
  found.array = range.name;
  found.element_bytes = range.element_bytes;
  found.count = static_cast<int64_t>(range.bytes / range.element_bytes);
  const auto offset = static_cast<int64_t>(reinterpret_cast<uintptr_t>(address) - state.begin);
  found.index = floor_divide(offset, static_cast<int64_t>(range.element_bytes));
  if (state.pitch_bytes > 0) {
    found.row = floor_divide(offset, state.pitch_bytes);
    const int64_t in_row = offset - found.row * state.pitch_bytes;
    found.column = in_row / static_cast<int64_t>(range.element_bytes);
    found.padding =
        in_row >= state.row_bytes && offset >= 0 && offset < static_cast<int64_t>(range.bytes);
  }
  return found;
}

namespace {

// The element of an array in shared memory; of the closest one if the offset is in none.
FoundElement shared_element(const Executor& x, size_t offset) {
  FoundElement found;
  found.space = MemorySpace::shared;
  const auto take = [&](const char* name, size_t begin, size_t bytes, size_t element) {
    const auto size = static_cast<int64_t>(std::max<size_t>(element, 1));
    found.array = name != nullptr ? name : "";
    found.element_bytes = element;
    found.count = static_cast<int64_t>(bytes) / size;
    found.index = floor_divide(static_cast<int64_t>(offset) - static_cast<int64_t>(begin), size);
  };
  const SharedArray* closest = nullptr;
  for (const SharedArray& array : x.arrays) {
    if (offset + kSharedGuard / 2 >= array.offset &&
        offset < array.offset + array.bytes + kSharedGuard / 2) {
      closest = &array;
    }
  }
  if (closest != nullptr) {
    take(closest->name, closest->offset, closest->bytes, closest->element_bytes);
  } else {
    take(x.dynamic_name, 0, x.grid.shared_bytes, x.dynamic_element_bytes);
  }
  return found;
}

}  // namespace

FoundElement element_of(const Executor& x, const void* address, bool nearest) {
  return in_arena(x, address)
             ? shared_element(x, static_cast<size_t>(static_cast<const char*>(address) - x.shared))
             : element_at(address, nearest);
}

FoundElement element_at(const void* address, bool nearest) {
  if (const RangeState* state = find_range(address)) {
    return element_in(*state, address);
  }
  const auto at = reinterpret_cast<uintptr_t>(address);
  const RangeState* closest = nullptr;
  uintptr_t least = UINTPTR_MAX;
  for (const RangeState& state : range_table()) {
    const uintptr_t distance = at < state.begin ? state.begin - at : at - state.end;
    if (nearest && distance < least) {
      least = distance;
      closest = &state;
    }
  }
  return closest != nullptr ? element_in(*closest, address) : FoundElement{};
}

}  // namespace binade::kernels::host
