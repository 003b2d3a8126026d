#include <binade/kernels/host/executor_internal.h>
#include <binade/kernels/host/race.h>
#include <binade/kernels/host/wmma.h>

#include <cstring>
#include <limits>

namespace binade::kernels::host {
namespace {

constexpr uint32_t kWholeWarp = ~0u;
constexpr size_t kPointerAlignment = 32, kStrideAlignment = 16;  // bytes, by the guide
constexpr int kSubTile = 8;

void need_whole_warp(const char* what, uint32_t mask) {
  if (mask != kWholeWarp) {
    const Site site = current_thread(executor()).site;
    fail_thread({FindingKind::warp_divergence, site}, what, " at ", site, " needs a full warp");
  }
}

// The offset of an element from the pointer, in elements.
int64_t memory_offset(const WmmaMemoryLane& lane, WmmaPosition at) {
  return lane.row_major ? at.row * lane.stride + at.col : at.col * lane.stride + at.row;
}

void check_memory_lane(const WmmaMemoryLane& lane, const char* what, Site site) {
  if (reinterpret_cast<uintptr_t>(lane.memory) % kPointerAlignment != 0) {
    fail_thread({FindingKind::misaligned, site}, what, " at ", site,
                ": the pointer is not a multiple of ", kPointerAlignment, " bytes");
  }
  if (lane.stride * static_cast<int64_t>(lane.element_bytes) %
          static_cast<int64_t>(kStrideAlignment) !=
      0) {
    fail_thread({FindingKind::bad_argument, site}, what, " at ", site, ": a leading dimension of ",
                lane.stride, " elements is not a multiple of ", kStrideAlignment, " bytes");
  }
}

}  // namespace

// In an 8 x 8 tile a lane holds two neighbours of a row, or for b two neighbours of a column.
WmmaPosition wmma_position(const WmmaTile& tile, int lane, int element) {
  const int sub = element / 2, per_row = tile.cols / kSubTile;
  const int outer = lane / 4, inner = 2 * (lane % 4) + element % 2;
  const int row = sub / per_row * kSubTile, col = sub % per_row * kSubTile;
  return tile.use == WmmaUse::b ? WmmaPosition{row + inner, col + outer}
                                : WmmaPosition{row + outer, col + inner};
}

void wmma_memory_lanes(void* const* lanes, uint32_t mask) {
  Executor& x = executor();
  const Site site = current_thread(x).site;
  const auto& first = *static_cast<const WmmaMemoryLane*>(lanes[std::countr_zero(mask)]);
  const char* what = first.stores ? "store_matrix_sync" : "load_matrix_sync";
  need_whole_warp(what, mask);
  const int warp = x.current & ~31;
  // Elements of one row of memory are moved in pairs, all lanes together.
  const bool pairs = first.row_major != (first.tile.use == WmmaUse::b);
  const int step = pairs ? 2 : 1;
  for (int i = 0; i < first.tile.elements(); i += step) {
    for (int lane = 0; lane < 32; ++lane) {
      const auto& l = *static_cast<const WmmaMemoryLane*>(lanes[lane]);
      if (i == 0) {
        check_memory_lane(l, what, site);
      }
      const int64_t offset = memory_offset(l, wmma_position(l.tile, lane, i));
      auto* memory = static_cast<char*>(l.memory) + offset * static_cast<int64_t>(l.element_bytes);
      auto* element = static_cast<char*>(l.elements) + static_cast<size_t>(i) * l.element_bytes;
      const size_t bytes = l.element_bytes * static_cast<size_t>(step);
      check_address(memory, bytes, what, site);
      race::access(x, {memory, bytes, l.stores ? race::Kind::write : race::Kind::read, warp + lane},
                   site);
      std::memcpy(l.stores ? memory : element, l.stores ? element : memory, bytes);
    }
  }
}

namespace {

template <class T>
void wmma_product(void* const* lanes, uint32_t mask) {
  need_whole_warp("mma_sync", mask);
  constexpr int kMost = 32;
  using Sum = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
  T a[kMost][kMost], b[kMost][kMost];
  Sum d[kMost][kMost];
  const auto& any = *static_cast<const WmmaProductLane<T>*>(lanes[0]);
  const WmmaTile tile_a{WmmaUse::a, any.m, any.k}, tile_b{WmmaUse::b, any.k, any.n},
      tile_d{WmmaUse::accumulator, any.m, any.n};
  const auto each = [&](const WmmaTile& tile, auto f) {
    for (int lane = 0; lane < 32; ++lane) {
      const auto& l = *static_cast<const WmmaProductLane<T>*>(lanes[lane]);
      for (int i = 0; i < tile.elements(); ++i) {
        const WmmaPosition at = wmma_position(tile, lane, i);
        f(l, i, at.row, at.col);
      }
    }
  };
  using Lane = WmmaProductLane<T>;
  each(tile_a, [&](const Lane& l, int i, int row, int col) { a[row][col] = l.a[i]; });
  each(tile_b, [&](const Lane& l, int i, int row, int col) { b[row][col] = l.b[i]; });
  each(tile_d, [&](const Lane& l, int i, int row, int col) { d[row][col] = l.c[i]; });
  for (int row = 0; row < any.m; ++row) {
    for (int k = 0; k < any.k; ++k) {
      for (int col = 0; col < any.n; ++col) {
        d[row][col] += Sum{a[row][k]} * b[k][col];
      }
    }
  }
  each(tile_d, [&](const Lane& l, int i, int row, int col) {
    Sum sum = d[row][col];
    if (any.saturates) {
      constexpr Sum kLeast = std::numeric_limits<T>::lowest(),
                    kLargest = std::numeric_limits<T>::max();
      sum = std::clamp(sum, kLeast, kLargest);
    }
    l.d[i] = static_cast<T>(sum);  // an integer wraps
  });
}

constexpr uint32_t kTf32Dropped = 0x1fff;  // bits of the fraction

}  // namespace

void wmma_product_f32_lanes(void* const* lanes, uint32_t mask) { wmma_product<float>(lanes, mask); }
void wmma_product_s32_lanes(void* const* lanes, uint32_t mask) { wmma_product<int>(lanes, mask); }

float cut_to_tf32(float value) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & ~kTf32Dropped);
}
float round_to_tf32(float value) {
  if (!std::isfinite(value)) {
    return value;
  }
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t half = kTf32Dropped / 2 + 1;  // ties go away from zero, as cvt.rna.tf32.f32
  return std::bit_cast<float>((bits + half) & ~kTf32Dropped);
}

}  // namespace binade::kernels::host
