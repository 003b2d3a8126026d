// CPU sorts. Each element of a line becomes an item: a key and an index. Long lines of 32-bit keys
// use a radix sort from the lowest digit, others a comparison sort; topk only sorts what it
// selects. Lines are split over threads.
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/strided.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/sort/sort.h>
#include <binade/kernels/sort/sort_keys_internal.h>

#include <algorithm>
#include <vector>

namespace binade::kernels::cpu {
namespace {

struct Lines {
  View x, values, indices;  // with size 1 at the dimension
  int64_t n, k, x_step, values_step, indices_step;
  bool descending;
};

struct Offsets {
  int64_t x = 0, values = 0, indices = 0;
};
Offsets locate(const Lines& lines, int64_t line) {
  Offsets at;
  for (int d = lines.x.dim() - 1; d >= 0; --d) {
    const int64_t i = line % lines.x.size(d);
    line /= lines.x.size(d);
    at.x += i * lines.x.strides[d];
    at.values += i * lines.values.strides[d];
    at.indices += i * lines.indices.strides[d];
  }
  return at;
}

// Sorts by the keys, which are the upper halves; items of equal keys keep their order.
void radix_sort(std::vector<uint64_t>& items, std::vector<uint64_t>& other) {
  constexpr int kBits = 11, kDigits = 3;
  constexpr size_t kBuckets = size_t(1) << kBits;
  std::vector<size_t> count(kDigits * kBuckets, 0);
  const auto digit = [](uint64_t item, int d) {
    return static_cast<size_t>(item >> (32 + d * kBits)) & (kBuckets - 1);
  };
  for (uint64_t item : items) {
    for (int d = 0; d < kDigits; ++d) {
      ++count[static_cast<size_t>(d) * kBuckets + digit(item, d)];
    }
  }
  other.resize(items.size());
  for (int d = 0; d < kDigits; ++d) {
    size_t* start = count.data() + static_cast<size_t>(d) * kBuckets;
    size_t sum = 0;
    for (size_t b = 0; b < kBuckets; ++b) {
      const size_t here = start[b];
      start[b] = sum;
      sum += here;
    }
    for (uint64_t item : items) {
      other[start[digit(item, d)]++] = item;
    }
    items.swap(other);
  }
}

template <class Item>
void sort_items(std::vector<Item>& items, std::vector<Item>& other, int64_t k) {
  const auto before = [](const Item& a, const Item& b) { return comes_before(a, b); };
  constexpr size_t kLong = 2048;  // counting digits is faster from here on
  const auto end = items.begin() + k;
  if (end != items.end() && k > 0) {
    std::nth_element(items.begin(), end - 1, items.end(), before);
    std::sort(items.begin(), end, before);
    return;
  }
  if constexpr (sizeof(Item) == 8) {
    if (items.size() >= kLong) {
      return radix_sort(items, other);
    }
  }
  std::sort(items.begin(), items.end(), before);
}

template <class T>
void sort_line(const Lines& lines, const Offsets& at, std::vector<SortItem<SortKey<T>>>& items,
               std::vector<SortItem<SortKey<T>>>& other) {
  const T* x = lines.x.as<const T>() + at.x;
  T* values = lines.values.as<T>() + at.values;
  int64_t* indices = lines.indices.as<int64_t>() + at.indices;
  items.resize(static_cast<size_t>(lines.n));
  for (int64_t i = 0; i < lines.n; ++i) {
    items[static_cast<size_t>(i)] = make_item(sort_key(x[i * lines.x_step], lines.descending), i);
  }
  sort_items(items, other, lines.k);
  for (int64_t i = 0; i < lines.k; ++i) {
    const int64_t from = index_of(items[static_cast<size_t>(i)]);
    values[i * lines.values_step] = x[from * lines.x_step];
    indices[i * lines.indices_step] = from;
  }
}

void sort_lines(const TopK& a) {
  if (a.values.numel == 0) {
    return;
  }
  Lines lines = {a.x,
                 a.values,
                 a.indices,
                 a.x.size(a.dim),
                 a.values.size(a.dim),
                 a.x.strides[a.dim],
                 a.values.strides[a.dim],
                 a.indices.strides[a.dim],
                 a.largest};
  lines.x.sizes[a.dim] = 1;
  dispatch("sort", a.x.dtype, [&]<class T>(Type<T>) {
    parallel_for(a.x.numel / lines.n, 2048 / lines.n + 1, [&](int64_t begin, int64_t end) {
      std::vector<SortItem<SortKey<T>>> items, other;
      for (int64_t line = begin; line < end; ++line) {
        sort_line<T>(lines, locate(lines, line), items, other);
      }
    });
  });
}

}  // namespace

void sort(const Sort& a) {
  check_arguments(a);
  sort_lines({a.x, a.values, a.indices, a.dim, a.descending});
}

void topk(const TopK& a) {
  check_arguments(a);
  sort_lines(a);
}

}  // namespace binade::kernels::cpu
