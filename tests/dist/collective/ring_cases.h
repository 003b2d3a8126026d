// Compares collectives with exact values; every rank of a transport runs them.
#pragma once
#include <binade/core/io/crc32c.h>
#include <binade/core/tensor/create.h>
#include <binade/dist/collective/ring.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

namespace binade::dist {

// Small integers: every sum over 7 ranks is exact, and its average, too, if n is a power of two.
// Rank r holds ((7 i + 3 r) % 11 - 5) n.
inline double rank_value(int64_t i, int rank, int ranks) {
  return static_cast<double>(((7 * i + 3 * rank) % 11 - 5) * ranks);
}

inline double reduced_value(int64_t i, int ranks, ReduceOp op) {
  double sum = 0, most = rank_value(i, 0, ranks), least = most;
  for (int rank = 0; rank < ranks; ++rank) {
    const double value = rank_value(i, rank, ranks);
    sum += value;
    most = value > most ? value : most;
    least = value < least ? value : least;
  }
  switch (op) {
    case ReduceOp::sum: return sum;
    case ReduceOp::avg: return sum / ranks;
    case ReduceOp::max: return most;
    default: return least;
  }
}

inline Tensor rank_values(int64_t count, int rank, int ranks, DType dtype) {
  std::vector<double> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    values[static_cast<size_t>(i)] = rank_value(i, rank, ranks);
  }
  return from_values(std::span<const double>(values), {count}, dtype);
}

inline void check_values(const Tensor& x, int64_t first, int ranks, ReduceOp op,
                         const std::string& what) {
  const Tensor wide = x.to(Device{}).to(DType::f64);
  const auto* got = wide.data<double>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double expected = reduced_value(first + i, ranks, op);
    check(got[i] == expected, what, ": element ", i, " of ", x.numel(), " is ", got[i],
          ", expected ", expected);
  }
}

inline constexpr DType kReducedDTypes[] = {DType::f64,  DType::f32, DType::f16,
                                           DType::bf16, DType::i64, DType::i32};

// Runs all-reduce, reduce-scatter, all-gather and broadcast on exact values.
inline void exact_collectives(Transport& t, const std::vector<int64_t>& sizes,
                              const RingOptions& options) {
  const int n = t.size();
  for (const DType dtype : kReducedDTypes) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::max, ReduceOp::min}) {
      for (const int64_t size : sizes) {
        const std::string what =
            text(t.name(), " ", n, " ranks ", dtype, " ", to_string(op), " ", size);
        const Tensor x = rank_values(size, t.rank(), n, dtype).to(t.device());
        ring_all_reduce(t, x, op, options);
        check_values(x, 0, n, op, "all_reduce " + what);

        const Tensor whole = rank_values(size * n, t.rank(), n, dtype).to(t.device()),
                     part = empty({size}, dtype, t.device());
        ring_reduce_scatter(t, whole, part, op, options);
        check_values(part, t.rank() * size, n, op, "reduce_scatter " + what);
      }
    }
  }
}

inline void gather_and_broadcast(Transport& t, const std::vector<int64_t>& sizes,
                                 const RingOptions& options) {
  for (const int64_t size : sizes) {
    const Tensor x = full({size}, t.rank() + 1, DType::u8, t.device()),
                 gathered = empty({size * t.size()}, DType::u8, t.device());
    ring_all_gather(t, x, gathered, options);
    const Tensor all = gathered.to(Device{});
    for (int64_t i = 0; i < all.numel(); ++i) {
      check(all.data<uint8_t>()[i] == i / size + 1, "all_gather: element ", i, " of ", size);
    }
    for (int root = 0; root < t.size(); ++root) {
      const Tensor sent = full({size}, 10 * t.rank(), DType::i32, t.device());
      ring_broadcast(t, sent, root, options);
      const Tensor y = sent.to(Device{});
      for (int64_t i = 0; i < size; ++i) {
        check(y.data<int32_t>()[i] == 10 * root, "broadcast from ", root, ": element ", i);
      }
    }
  }
}

// Ranges of different lengths: rank r owns r mod 3 parts, the last rank the rest.
inline std::vector<int64_t> uneven_bounds(int64_t size, int n) {
  std::vector<int64_t> bounds{0};
  for (int rank = 0; rank + 1 < n; ++rank) {
    bounds.push_back(std::min(size, bounds.back() + rank % 3 * (size / (2 * n))));
  }
  bounds.push_back(size);
  return bounds;
}

// Runs collectives in place over ranges of different lengths, some of them empty.
inline void exact_ranges(Transport& t, const std::vector<int64_t>& sizes, RingOptions options) {
  const int n = t.size();
  for (const DType dtype : kReducedDTypes) {
    for (const int64_t size : sizes) {
      const std::vector<int64_t> bounds = uneven_bounds(size, n);
      options.bounds = bounds;
      const auto rank = static_cast<size_t>(t.rank());
      const int64_t begin = bounds[rank], count = bounds[rank + 1] - begin;
      const Tensor x = rank_values(size, t.rank(), n, dtype),
                   before = rank_values(size, t.rank(), n, dtype);
      ring_reduce_scatter_ranges(t, x, ReduceOp::avg, options);
      const std::string what = text(t.name(), " ", n, " ranks ", dtype, " ", size);
      check_values(make_view(x, {count}, {1}, begin), begin, n, ReduceOp::avg, "ranges " + what);
      for (int64_t i = 0; i < size; ++i) {
        check((i >= begin && i < begin + count) || x.at(i) == before.at(i), what, ": element ", i,
              " of another rank has changed");
      }
      ring_all_gather_ranges(t, x, options);
      check_values(x, 0, n, ReduceOp::avg, "gathered " + what);
    }
  }
}

inline uint32_t reduced_bits(Transport& t, int64_t size, DType dtype, ReduceOp op,
                             const RingOptions& options) {
  manual_seed(static_cast<uint64_t>(100 + t.rank()));
  const Tensor x = (is_floating(dtype) ? randn({size}) : rank_values(size, t.rank(), 3, DType::f32))
                       .to(dtype)
                       .to(t.device());
  ring_all_reduce(t, x, op, options);
  const Tensor y = x.to(Device{});
  return crc32c(std::span(y.view().data, static_cast<size_t>(size) * binade::size_of(dtype)));
}

// All-reduces random values: the bits must be equal on every rank and in every repetition.
inline void same_bits(Transport& t, int64_t size, const RingOptions& options) {
  for (const DType dtype : kReducedDTypes) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg}) {
      const uint32_t first = reduced_bits(t, size, dtype, op, options);
      for (int repeat = 0; repeat < 2; ++repeat) {
        check(reduced_bits(t, size, dtype, op, options) == first, "all_reduce of ", dtype,
              " does not repeat");
      }
      const Tensor mine = full({1}, first, DType::i64, t.device()),
                   gathered = empty({t.size()}, DType::i64, t.device());
      ring_all_gather(t, mine, gathered);
      const Tensor all = gathered.to(Device{});
      for (int rank = 0; rank < t.size(); ++rank) {
        check(all.data<int64_t>()[rank] == first, "all_reduce of ", dtype, " differs on rank ",
              rank);
      }
    }
  }
}

}  // namespace binade::dist
