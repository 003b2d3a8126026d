// Register tiles and converting copies of kernels/gemm/contraction_internal.h.
#include <binade/kernels/gemm/contraction_internal.h>
#include <binade/kernels/gemm/contraction_tile_internal.h>

namespace binade::kernels::BINADE_ISA {
namespace {

// target[j] = source[j] for contiguous rows.
template <class From, class To>
BINADE_INLINE void copy_row(const From* source, To* target, int64_t count, int64_t padded) {
  using C = Compute<From>;
  int64_t j = 0;
  for (; j + kLanes<C> <= count; j += kLanes<C>) {
    store(target + j, load(source + j));
  }
  if (j < count) {
    const int left = static_cast<int>(count - j);
    store(target + j, load(source + j, left), left);
  }
  for (j = count; j < padded; ++j) {
    target[j] = To{};
  }
}

// Copies rows that are narrower than a vector and adjacent in the target. Each is written as a
// whole vector, and the next rows overwrite the surplus. The last rows are written exactly.
template <class C>
int64_t overwritten_rows(int64_t rows, int64_t columns) {
  return rows - (kLanes<C> + columns - 1) / columns + 1;
}

template <class From, class To>
void copy_narrow_rows(const From* source, int64_t source_row, To* target, int64_t rows,
                      int columns) {
  using C = Compute<From>;
  const int64_t whole = source_row >= kLanes<C> ? overwritten_rows<C>(rows, columns) - 1 : 0;
  int64_t i = 0;
  for (; i < whole; ++i) {
    store(target + i * columns, load(source + i * source_row));
  }
  for (; i < rows; ++i) {
    store(target + i * columns, load(source + i * source_row, columns), columns);
  }
}

// Copies rows that are as wide as a register tile.
template <class From, class To>
void copy_tile_rows(const From* source, int64_t source_row, To* target, int64_t target_row,
                    int64_t rows) {
  constexpr int kCount = kLanes<Compute<From>>;
#pragma GCC unroll 4
  for (int64_t i = 0; i < rows; ++i) {
    const Vector<Compute<From>> low = load(source + i * source_row),
                                high = load(source + i * source_row + kCount);
    store(target + i * target_row, low);
    store(target + i * target_row + kCount, high);
  }
}

// target[i][j] = source[j][i]: both contiguous in their last index, [rows, columns] of the target.
template <class From, class To>
void copy_transposed(const From* source, int64_t source_row, To* target, int64_t target_row,
                     int64_t rows, int64_t columns) {
  using C = Compute<From>;
  constexpr int kCount = kLanes<C>;
  const bool narrow = columns > 0 && columns < kCount && target_row == columns;
  const int64_t overwritten = narrow ? overwritten_rows<C>(rows, columns) : 0;
  for (int64_t i = 0; i < rows; i += kCount) {
    const int height = static_cast<int>(rows - i < kCount ? rows - i : kCount);
    for (int64_t j = 0; j < columns; j += kCount) {
      const int width = static_cast<int>(columns - j < kCount ? columns - j : kCount);
      Vector<C> r[kCount];
      const From* from = source + j * source_row + i;
      To* to = target + i * target_row + j;
      if (height == kCount) {
        for (int q = 0; q < kCount; ++q) {
          r[q] = q < width ? load(from + q * source_row) : Vector<C>{};
        }
      } else {
        for (int q = 0; q < kCount; ++q) {
          r[q] = q < width ? load(from + q * source_row, height) : Vector<C>{};
        }
      }
      transpose<C>(r);
      if (height == kCount && (width == kCount || i + kCount <= overwritten)) {
        for (int q = 0; q < kCount; ++q) {
          store(to + q * target_row, r[q]);
        }
      } else {
        for (int q = 0; q < height; ++q) {
          store(to + q * target_row, r[q], width);
        }
      }
    }
  }
}

// Sets columns [columns, padded) of the target to zero, if there are any.
template <class To>
void pad_columns(To* target, int64_t target_row, int64_t rows, int64_t columns, int64_t padded) {
  for (int64_t i = 0; i < rows && columns < padded; ++i) {
    for (int64_t j = columns; j < padded; ++j) {
      target[i * target_row + j] = To{};
    }
  }
}

template <class From, class To>
void copy_elements(const StridedCopy& s, const From* source, To* target) {
  for (int64_t i = 0; i < s.sizes[1]; ++i) {
    const From* from = source + i * s.source_strides[1];
    To* to = target + i * s.target_strides[1];
    int64_t j = 0;
    for (; j < s.sizes[2]; ++j) {  // one lane: converted as everywhere else
      store(to + j * s.target_strides[2], load(from + j * s.source_strides[2], 1), 1);
    }
    for (; j < s.padded_columns; ++j) {
      to[j] = To{};
    }
  }
}

template <class From, class To>
void copy_typed(const StridedCopy& s) {
  const int64_t *from = s.source_strides, *to = s.target_strides;
  for (int64_t i = 0; i < s.sizes[0]; ++i) {
    const From* source = static_cast<const From*>(s.source) + i * from[0];
    To* target = static_cast<To*>(s.target) + i * to[0];
    if (to[2] == 1 && from[2] == 1 && to[1] == s.sizes[2] && s.padded_columns <= to[1] &&
        s.sizes[2] > 0 && s.sizes[2] < kLanes<Compute<From>>) {
      copy_narrow_rows(source, from[1], target, s.sizes[1], static_cast<int>(s.sizes[2]));
    } else if (to[2] == 1 && from[2] == 1 && s.sizes[2] == 2 * kLanes<Compute<From>> &&
               s.padded_columns <= s.sizes[2]) {
      copy_tile_rows(source, from[1], target, to[1], s.sizes[1]);
    } else if (to[2] == 1 && from[2] == 1) {
      for (int64_t j = 0; j < s.sizes[1]; ++j) {
        copy_row(source + j * from[1], target + j * to[1], s.sizes[2], s.padded_columns);
      }
    } else if (to[2] == 1 && from[1] == 1) {
      copy_transposed(source, from[2], target, to[1], s.sizes[1], s.sizes[2]);
      pad_columns(target, to[1], s.sizes[1], s.sizes[2], s.padded_columns);
    } else if (to[1] == 1 && from[2] == 1 && s.padded_columns <= s.sizes[2]) {
      copy_transposed(source, from[1], target, to[2], s.sizes[2], s.sizes[1]);
    } else {
      copy_elements(s, source, target);
    }
  }
}

}  // namespace

void tile_sets(TileSet<float>& f32, TileSet<double>& f64) {
  f32 = make_tile_set<float>(TileRows{});
  f64 = make_tile_set<double>(TileRows{});
}

void copy_strided(const StridedCopy& s) {
  if (s.from == DType::f64) {
    copy_typed<double, double>(s);
  } else if (s.from == DType::f16) {
    copy_typed<half, float>(s);
  } else if (s.from == DType::bf16 && s.to == DType::bf16) {
    copy_typed<bfloat16, bfloat16>(s);
  } else if (s.from == DType::bf16) {
    copy_typed<bfloat16, float>(s);
  } else if (s.to == DType::f16) {
    copy_typed<float, half>(s);
  } else if (s.to == DType::bf16) {
    copy_typed<float, bfloat16>(s);
  } else {
    copy_typed<float, float>(s);
  }
}

}  // namespace binade::kernels::BINADE_ISA
