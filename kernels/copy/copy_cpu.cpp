// CPU copies, fills and accumulation. A copy between layouts with different innermost dimensions
// (matrix transpose, NCHW to NHWC) goes through square blocks; all others through coalesced rows.
#include <binade/kernels/base/number_internal.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/copy/copy_isa_internal.h>
#include <binade/kernels/pointwise/pointwise_internal.h>
#include <binade/kernels/pointwise/pointwise_isa_internal.h>

#include <algorithm>
#include <cstring>

namespace binade::kernels::cpu {
namespace {

// Moving a few elements takes less time than the path to the vector loops.
constexpr int64_t kFewElements = 16;

int64_t width(DType dtype) { return static_cast<int64_t>(size_of(dtype)); }

// The dimension along which x is contiguous if that is not y's innermost one, else 0.
int transposed_dim(const StridedLoop& loop, const Copy& a) {
  if (loop.stride(0, 0) != width(a.y.dtype) || loop.stride(1, 0) == width(a.x.dtype) ||
      loop.stride(1, 0) == 0) {
    return 0;
  }
  for (int d = 1; d < loop.dims(); ++d) {
    if (loop.stride(1, d) == width(a.x.dtype)) {
      return d;
    }
  }
  return 0;
}

int64_t blocks(int64_t size) { return (size + TransposeBlock::kSide - 1) / TransposeBlock::kSide; }

// Loops over (the other dimensions) x (blocks of dimension 0) x (blocks of dimension j):
// neighbouring blocks read on in the same rows of x.
void copy_transposed(const StridedLoop& loop, int j, const Copy& a) {
  constexpr int64_t kSide = TransposeBlock::kSide;
  const int64_t n_i = loop.size(0), n_j = loop.size(j);
  const int64_t blocks_i = blocks(n_i), blocks_j = blocks(n_j);
  const int64_t units = loop.numel() / (n_i * n_j) * blocks_i * blocks_j;
  const bool nontemporal = loop.numel() * width(a.y.dtype) >= kNontemporalBytes;
  const int64_t per_unit = (n_i < kSide ? n_i : kSide) * (n_j < kSide ? n_j : kSide);
  parallel_for(units, (kSerialElements + per_unit - 1) / per_unit, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      int64_t rest = unit;
      const int64_t j0 = rest % blocks_j * kSide;
      rest /= blocks_j;
      const int64_t i0 = rest % blocks_i * kSide;
      rest /= blocks_i;
      int64_t y_offset = i0 * loop.stride(0, 0) + j0 * loop.stride(0, j);
      int64_t x_offset = i0 * loop.stride(1, 0) + j0 * loop.stride(1, j);
      for (int d = 1; d < loop.dims(); ++d) {
        if (d != j) {
          y_offset += rest % loop.size(d) * loop.stride(0, d);
          x_offset += rest % loop.size(d) * loop.stride(1, d);
          rest /= loop.size(d);
        }
      }
      transpose_block_best(
          a.x.dtype, a.y.dtype,
          TransposeBlock{loop.data(0) + y_offset, loop.data(1) + x_offset, loop.stride(0, j),
                         loop.stride(1, 0), n_i - i0 < kSide ? n_i - i0 : kSide,
                         n_j - j0 < kSide ? n_j - j0 : kSide, nontemporal});
    }
  });
}

}  // namespace

void copy(const Copy& a) {
  const auto body = [&](const StridedTile& tile) { convert_tile_best(a.x.dtype, a.y.dtype, tile); };
  if (all_flat(a.y, a.x)) {
    if (a.y.numel > 0 && a.y.numel <= kFewElements && a.x.dtype == a.y.dtype) {
      std::memmove(a.y.data, a.x.data, static_cast<size_t>(a.y.numel * width(a.y.dtype)));
      return;
    }
    return run_flat({{a.y.data, a.x.data}, {width(a.y.dtype), width(a.x.dtype)}, {}, 1, 0},
                    a.y.numel, body);
  }
  const StridedLoop loop("copy", {&a.y, &a.x});
  if (loop.numel() == 0) {
    return;
  }
  if (const int j = transposed_dim(loop, a)) {
    return copy_transposed(loop, j, a);
  }
  loop.run(body);
}

void fill(const Fill& a) {
  uint64_t bits = bits_of(a.y.dtype, a.value);
  if (a.y.contiguous && a.y.numel <= kFewElements) {
    return dispatch_width(a.y.dtype, [&]<class T>(Type<T>) {
      std::fill_n(a.y.as<T>(), a.y.numel, static_cast<T>(bits));
    });
  }
  const auto body = [&](const StridedTile& tile) { convert_tile_best(a.y.dtype, a.y.dtype, tile); };
  auto* element = reinterpret_cast<std::byte*>(&bits);
  if (a.y.contiguous) {
    return run_flat({{a.y.data, element}, {width(a.y.dtype), 0}, {}, 1, 0}, a.y.numel, body);
  }
  const View number = view_of(element, a.y.dtype, {});
  StridedLoop("fill", {&a.y, &number}).run(body);
}

void add_into(const AddInto& a) {
  if (is_plain(a.y, a.x)) [[likely]] {
    return binary_forward({.op = Binary::add, .a = a.y, .b = a.x, .y = a.y});
  }
  check_arguments(a);
  const auto body = [&](const StridedTile& tile) {
    binary_forward_tile_best(Binary::add, a.y.dtype, tile);
  };
  StridedLoop("add_into", {&a.y, &a.y, &a.x}).run(body);
}

}  // namespace binade::kernels::cpu
