// What a bag of indices computes, for both backends.
#pragma once
#include <binade/kernels/base/host_device.h>
#include <binade/kernels/index/embedding_bag.h>

namespace binade::kernels {

// The entries of bag b. bad(what, value, bound) is called for numbers outside 0 .. bound - 1; such
// a bag is empty.
struct BagEntries {
  int64_t begin = 0, end = 0;

  template <class F>
  BINADE_HD BagEntries(const int64_t* offsets, int64_t b, int64_t bags, int64_t n, const F& bad) {
    const int64_t first = offsets[b], last = offsets[b + 1];
    if (b > 0 && (first < 0 || first > n)) {
      return;  // the end of an earlier bag, which reports it: one error, whichever bag runs first
    }
    if (b == 0 && first != 0) {
      bad("a first offset of", first, int64_t{1});
    } else if (last < 0 || last > n) {
      bad("an offset of", last, n + 1);
    } else if (last < first) {
      bad("a bag of length", last - first, n - first + 1);
    } else if (b + 1 == bags && last != n) {
      bad("indices after the last bag, in number", n - last, int64_t{1});
    } else {
      begin = first;
      end = last;
    }
  }
};

// Keeps the first of the largest elements. NaN is the largest.
template <class C>
struct BagMaximum {
  C value = 0;
  int64_t row = -1;

  BINADE_HD void add(C x, int64_t row_of_x) {
    const bool is_nan = x != x, was_nan = value != value;  // NOLINT(misc-redundant-expression)
    if (row < 0 || x > value || (is_nan && !was_nan)) {
      value = x;
      row = row_of_x;
    }
  }
};

}  // namespace binade::kernels
