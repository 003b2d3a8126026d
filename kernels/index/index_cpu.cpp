// Index kernels on the CPU. Indices are checked before anything is written. Only a gather in which
// every element has its own index checks it as it reads it, because an error discards the result.
// In scatter_add each element of y is written once, by one thread: rows after a counting sort of
// the indices, single elements from sums of several adjacent lines.
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/strided.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/index/index_internal.h>
#include <binade/kernels/index/index_isa_internal.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace binade::kernels::cpu {
namespace {

// The view itself, or a row-major copy.
class Packed {
 public:
  explicit Packed(const View& source)
      : memory_(source.contiguous ? 0 : static_cast<size_t>(source.numel) * size_of(source.dtype)),
        view_(source) {
    if (!source.contiguous) {
      view_.data = memory_.as<std::byte>();
      view_.strides = row_major_strides(source.sizes);
      view_.contiguous = true;
      copy({.x = source, .y = view_});
    }
  }
  const View& view() const { return view_; }

 private:
  Workspace memory_;
  View view_;
};

// Offset in elements of x of position i (row-major) in dimensions [first, last).
int64_t offset_of(const View& x, int first, int last, int64_t i) {
  int64_t offset = 0;
  for (int d = last - 1; d >= first; --d) {
    offset += i % x.size(d) * x.strides[d];
    i /= x.size(d);
  }
  return offset;
}

bool has_adjacent_elements(const View& x, int first) {
  int64_t stride = 1;
  for (int d = x.dim() - 1; d >= first; --d) {
    if (x.size(d) != 1 && x.strides[d] != stride) {
      return false;
    }
    stride *= x.size(d);
  }
  return true;
}

int64_t grain_of(int64_t elements) { return kSerialElements / (elements > 0 ? elements : 1) + 1; }

// The part of x that the rows of y with one outer index read: `bound` entries, `along` apart.
template <class W>
struct GatherLine {
  const W* x;
  int64_t along, bound, exempt;

  // Copies elements, each with its own index, from entries that begin at inner_at (null: 0).
  // Returns false if an index is out of range.
  bool elements(const int64_t* index, const int64_t* inner_at, int64_t n, W* y) const {
    if (exempt == kNoExemption && !inner_at) {
      return along == 1 ? copy<false>(index, std::integral_constant<int64_t, 1>{}, nullptr, n, y)
                        : copy<false>(index, along, nullptr, n, y);
    }
    return copy<true>(index, along, inner_at, n, y);
  }
  // Copies the elements at `inner_at` from the entry at an index that was checked.
  void row(int64_t index, const int64_t* inner_at, int64_t n, W* y) const {
    for (int64_t i = 0; i < n; ++i) {
      y[i] = index == exempt ? W(0) : x[index * along + inner_at[i]];
    }
  }

 private:
  template <bool kGeneral, class Along>
  bool copy(const int64_t* index, Along step, const int64_t* inner_at, int64_t n, W* y) const {
    bool outside = false;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t k = index[i], at = kGeneral && inner_at ? inner_at[i] : 0;
      const bool inside = static_cast<uint64_t>(k) < static_cast<uint64_t>(bound);
      const bool none = kGeneral && k == exempt;
      outside |= !inside;
      y[i] = inside && !none ? x[k * step + at] : W(0);
    }
    return !outside;
  }
};

// For inner ranges of one element.
template <class W>
void gather_elements(const Gather& a, const IndexShape& s, const View& index) {
  parallel_for(s.outer * s.count, kSerialElements, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t outer = begin / s.count;
      const int64_t n = std::min(end, (outer + 1) * s.count) - begin;
      const GatherLine<W> line{a.x.as<const W>() + offset_of(a.x, 0, a.dim, outer),
                               a.x.strides[a.dim], s.bound, a.exempt};
      if (!line.elements(index.as<const int64_t>() + begin, nullptr, n, a.y.as<W>() + begin)) {
        check_indices(index, {a.op, "index", s.bound});
      }
      begin += n;
    }
  });
}

template <class W>
void gather_rows(const Gather& a, const IndexShape& s, const View& indices) {
  const int64_t* index = indices.as<const int64_t>();
  const bool adjacent = has_adjacent_elements(a.x, a.dim + 1);
  const Workspace offsets(static_cast<size_t>(s.inner) * sizeof(int64_t));
  int64_t* inner_at = offsets.as<int64_t>();
  for (int64_t i = 0; i < s.inner; ++i) {
    inner_at[i] = offset_of(a.x, a.dim + 1, a.x.dim(), i);
  }
  parallel_for(s.outer * s.count, grain_of(s.inner), [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t outer = begin / s.count, stop = std::min(end, (outer + 1) * s.count);
      const GatherLine<W> line{a.x.as<const W>() + offset_of(a.x, 0, a.dim, outer),
                               a.x.strides[a.dim], s.bound, a.exempt};
      W* y = a.y.as<W>() + begin * s.inner;
      const int64_t* k = index + begin * s.index_inner;
      for (; begin < stop; ++begin, y += s.inner, k += s.index_inner) {
        if (s.rows && *k != a.exempt && adjacent) {
          std::memcpy(y, line.x + *k * line.along, static_cast<size_t>(s.inner) * sizeof(W));
        } else if (s.rows) {
          line.row(*k, inner_at, s.inner, y);
        } else if (!line.elements(k, inner_at, s.inner, y)) {
          check_indices(indices, {a.op, "index", s.bound});
        }
      }
    }
  });
}

// Sorts the positions of `count` indices, `stride` apart, by index. The positions of index k become
// order[starts[k]] to order[starts[k + 1] - 1]. starts has bound + 1 elements.
void counting_sort(const int64_t* index, int64_t stride, const IndexShape& s, int64_t exempt,
                   int64_t* starts, int64_t* order) {
  std::memset(starts, 0, static_cast<size_t>(s.bound + 1) * sizeof(int64_t));
  for (int64_t j = 0; j < s.count; ++j) {
    const int64_t k = index[j * stride];
    starts[k + 1] += k != exempt;
  }
  for (int64_t k = 0; k < s.bound; ++k) {
    starts[k + 1] += starts[k];
  }
  for (int64_t j = 0; j < s.count; ++j) {
    if (const int64_t k = index[j * stride]; k != exempt) {
      order[starts[k]++] = j;
    }
  }
  for (int64_t k = s.bound; k > 0; --k) {  // each start has moved to the next one
    starts[k] = starts[k - 1];
  }
  starts[0] = 0;
}

// The first entries along dimension `dim`: the view without that dimension.
View first_entries(View view, int dim) {
  view.numel /= view.size(dim);
  view.sizes[dim] = 1;
  return view;
}

// Writes src to y. If the indices are distinct the tiles cover all entries; else they cover the
// first entry of each line, and the loop then goes along the line in order, so that the last value
// stays.
template <class W>
void write_entries(const Scatter& a) {
  const int64_t count = a.distinct ? 1 : a.index.size(a.dim);
  const View lines = target_lines(a), y = a.distinct ? lines : first_entries(lines, a.dim),
             index = a.distinct ? a.index : first_entries(a.index, a.dim),
             src = a.distinct ? a.src : first_entries(a.src, a.dim);
  const int64_t y_step = a.y.strides[a.dim], src_step = a.src.strides[a.dim],
                index_step = a.index.strides[a.dim];
  StridedLoop(a.op, {&y, &index, &src}).run([&](const StridedTile& tile) {
    const auto write = [&](int64_t row, int64_t i, int64_t j) {
      const auto at = [&](int k) { return tile.data[k] + row * tile.outer[k] + i * tile.inner[k]; };
      const int64_t k = reinterpret_cast<const int64_t*>(at(1))[j * index_step];
      reinterpret_cast<W*>(at(0))[k * y_step] = reinterpret_cast<const W*>(at(2))[j * src_step];
    };
    // The inner loop is the one whose indices are closer together.
    const bool across = tile.inner[1] < index_step * static_cast<int64_t>(sizeof(int64_t));
    const int64_t inner = across ? tile.n : count, outer = across ? count : tile.n;
    for (int64_t row = 0; row < tile.rows; ++row) {
      for (int64_t m = 0; m < outer; ++m) {
        for (int64_t n = 0; n < inner; ++n) {
          write(row, across ? n : m, across ? m : n);
        }
      }
    }
  });
}

// Rows that share an index: a row of y is the sum of rows of src. A counting sort gives each thread
// the rows of src that belong to its rows of y.
struct RowSums {
  const ScatterAdd& a;
  const IndexShape& s;
  const int64_t* index;
  const std::byte* src;
  int64_t width;

  void add_line(int64_t o, int64_t* starts, int64_t* order) const {
    counting_sort(index + o * s.count, 1, s, a.exempt, starts, order);
    const std::byte* from = src + o * s.count * s.inner * width;
    std::byte* to = a.y.data + o * s.bound * s.inner * width;
    parallel_for(s.bound, grain_of(s.inner), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        if (starts[k + 1] > starts[k]) {
          sum_rows_best(SumRows{.dtype = a.y.dtype,
                                .src = from,
                                .order = order + starts[k],
                                .count = starts[k + 1] - starts[k],
                                .stride = s.inner,
                                .columns = s.inner,
                                .y = to + k * s.inner * width});
        }
      }
    });
  }

  void add_lines(int64_t begin, int64_t end) const {
    const Workspace memory(static_cast<size_t>(s.bound + 1 + s.count) * sizeof(int64_t));
    int64_t* starts = memory.as<int64_t>();
    for (int64_t line = begin; line < end; ++line) {
      add_line(line, starts, starts + s.bound + 1);
    }
  }
};

// Element by element. The results of several adjacent lines are kept side by side, floating ones in
// double, while their terms are read in order.
template <class T, class Combined>
struct ElementTerms {
  using A = std::conditional_t<std::is_integral_v<T>, T, double>;
  const ScatterAdd& a;
  const IndexShape& s;
  const int64_t* index;
  const T* src;

  // Columns of a tile, by shape alone: if possible their sums fit into 512 KiB.
  int64_t width() const {
    const int64_t most = std::clamp<int64_t>(65536 / std::max<int64_t>(s.bound, 1), 1, 16);
    return std::min(most, s.inner);
  }
  int64_t tiles() const { return (s.inner + width() - 1) / width(); }

  void add_tiles(int64_t begin, int64_t end) const {
    const Workspace memory(static_cast<size_t>(s.bound * width()) * sizeof(A));
    A* sums = memory.as<A>();
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t outer = tile / tiles(), first = tile % tiles() * width();
      const int64_t columns = std::min(width(), s.inner - first);
      std::fill_n(sums, s.bound * columns, Combined::template none<A>());
      const Line from = {index + outer * s.count * s.index_inner + (s.rows ? 0 : first),
                         src + outer * s.count * s.inner + first};
      T* y = a.y.as<T>() + outer * s.bound * s.inner + first;
      if (s.inner == 1) {
        constexpr std::integral_constant<int64_t, 1> kOne;
        add_terms(from, kOne, kOne, sums);
        add_sums(sums, kOne, kOne, y);
      } else {
        add_terms(from, columns, s.inner, sums);
        add_sums(sums, columns, s.inner, y);
      }
    }
  }

 private:
  struct Line {
    const int64_t* index;
    const T* src;
  };

  template <class N>
  void add_sums(const A* sums, N columns, N inner, T* y) const {
    for (int64_t k = 0; k < s.bound; ++k) {
      for (int64_t i = 0; i < columns; ++i) {
        T& target = y[k * inner + i];
        const A joined = Combined::join(static_cast<A>(target), sums[k * columns + i]);
        if constexpr (std::is_integral_v<T>) {
          target = joined;
        } else {
          target = static_cast<T>(static_cast<Compute<T>>(joined));
        }
      }
    }
  }

  template <class N>
  void add_terms(Line at, N columns, N inner, A* sums) const {
    const int64_t next = s.rows ? 0 : 1;  // all columns of a row share an index
    for (int64_t j = 0; j < s.count; ++j) {
      for (int64_t i = 0; i < columns; ++i) {
        const int64_t k = at.index[i * next];
        if (k != a.exempt) {
          A& sum = sums[k * columns + i];
          sum = Combined::join(sum, static_cast<A>(at.src[i]));
        }
      }
      at.index += s.index_inner;
      at.src += inner;
    }
  }
};

}  // namespace

void gather(const Gather& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  const IndexShape s = index_shape(a.index, a.dim, a.x.size(a.dim));
  const Packed index(distinct_indices(a.index, a.dim, s));
  if (s.inner == 1) {
    return dispatch_width(a.y.dtype,
                          [&]<class W>(Type<W>) { gather_elements<W>(a, s, index.view()); });
  }
  if (s.rows) {
    check_indices(index.view(), {a.op, "index", s.bound});
  }
  dispatch_width(a.y.dtype, [&]<class W>(Type<W>) { gather_rows<W>(a, s, index.view()); });
}

void scatter_add(const ScatterAdd& a) {
  check_arguments(a);
  if (a.src.numel == 0) {
    return;
  }
  const IndexShape s = index_shape(a.index, a.dim, a.y.size(a.dim));
  const Packed index(distinct_indices(a.index, a.dim, s)), src(a.src);
  check_indices(index.view(), {a.op, "index", s.bound});
  const bool sums_of_rows =
      s.rows && s.inner > 1 && a.combine == ScatterOp::sum && is_floating(a.y.dtype);
  if (!sums_of_rows) {
    return dispatch_terms(a, [&]<class T, class Combined>(Type<T>, Combined) {
      const ElementTerms<T, Combined> sums{a, s, index.view().as<int64_t>(),
                                           src.view().template as<T>()};
      parallel_for(s.outer * sums.tiles(), grain_of((s.bound + s.count) * sums.width()),
                   [&](int64_t begin, int64_t end) { sums.add_tiles(begin, end); });
    });
  }
  const RowSums sums{a, s, index.view().as<int64_t>(), src.view().data,
                     static_cast<int64_t>(size_of(a.y.dtype))};
  if (s.outer == 1) {  // the threads share the only outer index
    return sums.add_lines(0, 1);
  }
  parallel_for(s.outer, grain_of(s.bound * s.inner + s.count),
               [&](int64_t begin, int64_t end) { sums.add_lines(begin, end); });
}

void scatter(const Scatter& a) {
  check_arguments(a);
  if (a.src.numel == 0) {
    return;
  }
  if (!a.distinct) {
    check_indices(a.index, {a.op, "index", a.y.size(a.dim)});
  }
  dispatch_width(a.y.dtype, [&]<class W>(Type<W>) { write_entries<W>(a); });
}

void one_hot(const OneHot& a) {
  check_arguments(a);
  const int64_t classes = a.y.sizes.back();
  check_indices(a.index, {"one_hot", "index", classes});
  if (a.y.numel == 0) {
    return;
  }
  const Packed index(a.index);
  parallel_for(a.index.numel, grain_of(classes), [&](int64_t begin, int64_t end) {
    int64_t* y = a.y.as<int64_t>();
    std::memset(y + begin * classes, 0,
                static_cast<size_t>((end - begin) * classes) * sizeof(int64_t));
    for (int64_t i = begin; i < end; ++i) {
      y[i * classes + index.view().as<int64_t>()[i]] = 1;
    }
  });
}

}  // namespace binade::kernels::cpu
