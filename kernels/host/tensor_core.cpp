// ldmatrix and mma.sync, in the fragment layouts of the PTX ISA.
#include <binade/kernels/host/executor_internal.h>
#include <binade/kernels/host/race.h>

#include <cstring>

namespace binade::kernels::host {

static constexpr uint32_t kFullWarp = ~0u;

// Lane l gives the address of row l % 8 of matrix l / 8. It receives elements (l / 4, 2 (l % 4))
// and the next one of each matrix; transposed, element (2 (l % 4), l / 4) and the one below.
void load_matrix_lanes(void* const* lanes, uint32_t mask) {
  constexpr size_t kRow = 16;
  Executor& x = executor();
  const Site site = current_thread(x).site;
  if (mask != kFullWarp) {
    fail_thread({FindingKind::warp_divergence, site}, "ldmatrix at ", site, " needs a full warp");
  }
  uint16_t rows[32][8];
  const int first = x.current & ~31;
  for (int lane = 0; lane < 32; ++lane) {
    const void* row = static_cast<const LoadMatrixLane*>(lanes[lane])->row;
    if (!in_shared(x, row, kRow)) {
      fail_thread({FindingKind::out_of_bounds, site}, "ldmatrix at ", site, ": the row of lane ",
                  lane, " is outside of shared memory");
    }
    if (reinterpret_cast<uintptr_t>(row) % kRow != 0) {
      fail_thread({FindingKind::misaligned, site}, "ldmatrix at ", site, ": the row of lane ", lane,
                  " is not a multiple of 16");
    }
    race::access(x, {row, kRow, race::Kind::read, first + lane}, site);
    std::memcpy(rows[lane], row, kRow);
  }
  const bool transposed = static_cast<const LoadMatrixLane*>(lanes[0])->transposed;
  for (int lane = 0; lane < 32; ++lane) {
    uint32_t* fragment = static_cast<const LoadMatrixLane*>(lanes[lane])->fragment;
    const int outer = lane / 4, inner = 2 * (lane % 4);
    for (int i = 0; i < 4; ++i) {
      const auto* matrix = &rows[i * 8];
      const uint32_t low = transposed ? matrix[inner][outer] : matrix[outer][inner];
      const uint32_t high = transposed ? matrix[inner + 1][outer] : matrix[outer][inner + 1];
      fragment[i] = low | high << 16;
    }
  }
}

namespace {

// One branch-free conversion for both 16-bit types: most of the cost of an emulated product.
template <class T>
float value_of(uint32_t bits) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    return std::bit_cast<float>(bits << 16);
  } else {
    const uint32_t magnitude = (bits & 0x7fffu) << 13;
    const float value = std::bit_cast<float>(magnitude) * 0x1p112f;  // subnormals become exact too
    const uint32_t special = magnitude >= 0x0f800000u ? 0x7f800000u : 0;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | special | (bits & 0x8000u) << 16);
  }
}

using Row = float __attribute__((vector_size(32)));  // 8 floats

struct Tiles {
  float a[16][16];
  Row b[16];  // k rows of 8 columns
  Row d[16];
};

// Fragment layouts of m16n8k16. Lane l has group l / 4 and pair 2 (l % 4). Register r of a is row
// group + 8 (r & 1), column pair + 8 (r >> 1); register r of b is row pair + 8 r, column group;
// element r of d is row group + 8 (r >> 1), column pair + (r & 1).
template <class T>
void gather(Tiles& tiles, void* const* lanes) {
  for (int lane = 0; lane < 32; ++lane) {
    const auto& s = *static_cast<const ProductLane*>(lanes[lane]);
    const int group = lane / 4, pair = 2 * (lane % 4);
    for (int r = 0; r < 4; ++r) {
      float* a = &tiles.a[group + 8 * (r & 1)][pair + 8 * (r >> 1)];
      a[0] = value_of<T>(s.a[r] & 0xffffu);
      a[1] = value_of<T>(s.a[r] >> 16);
      tiles.d[group + 8 * (r >> 1)][pair + (r & 1)] = s.d[r];
    }
    for (int r = 0; r < 2; ++r) {
      tiles.b[pair + 8 * r][group] = value_of<T>(s.b[r] & 0xffffu);
      tiles.b[pair + 8 * r + 1][group] = value_of<T>(s.b[r] >> 16);
    }
  }
}

template <class T>
void product_lanes(void* const* lanes, uint32_t mask) {
  if (mask != kFullWarp) {
    const Site site = current_thread(executor()).site;
    fail_thread({FindingKind::warp_divergence, site}, "mma.sync at ", site, " needs a full warp");
  }
  Tiles tiles;
  gather<T>(tiles, lanes);
  for (int i = 0; i < 16; ++i) {
    Row sum = tiles.d[i];
    for (int k = 0; k < 16; ++k) {
      sum += tiles.a[i][k] * tiles.b[k];
    }
    tiles.d[i] = sum;
  }
  for (int lane = 0; lane < 32; ++lane) {
    const auto& s = *static_cast<const ProductLane*>(lanes[lane]);
    for (int r = 0; r < 4; ++r) {
      s.d[r] = tiles.d[lane / 4 + 8 * (r >> 1)][2 * (lane % 4) + (r & 1)];
    }
  }
}

}  // namespace

void product_f16_lanes(void* const* lanes, uint32_t mask) { product_lanes<half>(lanes, mask); }
void product_bf16_lanes(void* const* lanes, uint32_t mask) { product_lanes<bfloat16>(lanes, mask); }

}  // namespace binade::kernels::host
