// Sort keys are unsigned integers in the order of the elements. An item is a key and an index; all
// items differ, so that any sort of items is a stable sort of elements. Shared by both backends.
#pragma once
#include <binade/kernels/base/dtype.h>
#include <binade/kernels/base/host_device.h>

#include <bit>
#include <type_traits>

namespace binade::kernels {

template <class T>
using SortKey = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

// NaN is the largest key, whatever its sign; -0 equals 0.
template <class T>
BINADE_HD SortKey<T> ascending_key(T element) {
  using Key = SortKey<T>;
  constexpr Key kSign = Key(1) << (8 * sizeof(Key) - 1);
  if constexpr (std::is_integral_v<T>) {
    using Signed = std::make_signed_t<Key>;
    return static_cast<Key>(static_cast<Signed>(element)) ^ kSign;
  } else {
    const auto x = static_cast<Compute<T>>(element);
    if (x != x) {
      return ~Key(0);
    }
    const Key bits = x == 0 ? Key(0) : std::bit_cast<Key>(x);
    return bits & kSign ? ~bits : bits | kSign;
  }
}
template <class T>
BINADE_HD SortKey<T> sort_key(T element, bool descending) {
  const SortKey<T> key = ascending_key(element);
  return descending ? ~key : key;
}

struct WideItem {
  uint64_t key, index;
};

template <class Key>
using SortItem = std::conditional_t<sizeof(Key) == 8, WideItem, uint64_t>;

BINADE_HD inline uint64_t make_item(uint32_t key, int64_t index) {
  return uint64_t(key) << 32 | static_cast<uint32_t>(index);
}
BINADE_HD inline WideItem make_item(uint64_t key, int64_t index) {
  return {key, static_cast<uint64_t>(index)};
}
BINADE_HD inline bool comes_before(uint64_t a, uint64_t b) { return a < b; }
BINADE_HD inline bool comes_before(const WideItem& a, const WideItem& b) {
  return a.key < b.key || (a.key == b.key && a.index < b.index);
}
BINADE_HD inline int64_t index_of(uint64_t item) { return static_cast<uint32_t>(item); }
BINADE_HD inline int64_t index_of(const WideItem& item) { return static_cast<int64_t>(item.index); }

// An item that comes after every item of an element.
template <class Item>
BINADE_HD Item last_item() {
  if constexpr (sizeof(Item) == 8) {
    return ~uint64_t(0);
  } else {
    return {~uint64_t(0), ~uint64_t(0)};
  }
}

}  // namespace binade::kernels
