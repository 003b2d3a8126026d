// Primitives against references written from the PTX manual, not from the executor.
#include <gtest/gtest.h>
#include <tests/host/host_launch.h>
#include <tests/host/primitives.h>

#include <cmath>
#include <vector>

namespace binade::kernels::host {
namespace {

class Primitives : public testing::TestWithParam<Schedule> {
 protected:
  Primitives() : with_({.schedule = GetParam(), .seed = 5}) {}

 private:
  WithOptions with_;
};

// The manual's loop for shfl.sync, with c = (32 - width) << 8 and a clamp of 31 or 0.
int shuffle_source(Shuffle mode, int lane, int argument, int width) {
  const int segment = 32 - width, limit = mode == Shuffle::up ? 0 : 31;
  const int max_lane = (lane & segment) | (limit & ~segment & 31);
  int source = 0;
  bool valid = false;
  switch (mode) {
    case Shuffle::up: source = lane - argument, valid = source >= max_lane; break;
    case Shuffle::down: source = lane + argument, valid = source <= max_lane; break;
    case Shuffle::exclusive_or: source = lane ^ argument, valid = source <= max_lane; break;
    case Shuffle::index:
      source = (lane & segment) | (argument & ~segment & 31), valid = source <= max_lane;
      break;
  }
  return valid ? source : lane;
}

TEST_P(Primitives, Shuffles) {
  for (const Shuffle mode : {Shuffle::index, Shuffle::up, Shuffle::down, Shuffle::exclusive_or}) {
    for (int width = 1; width <= 32; width *= 2) {
      for (const int argument : {0, 1, 2, 5, 16, 31}) {
        std::vector<int> y(64);
        run_shuffles(mode, argument, width, y.data());
        for (int i = 0; i < 64; ++i) {
          const int source = (i & 32) + shuffle_source(mode, i % 32, argument, width);
          ASSERT_EQ(y[i], 100 + source) << "mode " << static_cast<int>(mode) << " argument "
                                        << argument << " width " << width;
        }
      }
    }
  }
}

TEST_P(Primitives, Votes) {
  for (const unsigned mask : {~0u, 0xffffu, 0x80000001u, 0x00ff00f0u}) {
    for (const unsigned predicates : {0u, ~0u, 0x12345678u, 0x00ff0000u}) {
      std::vector<unsigned> ballot(32);
      std::vector<int> any(32), all(32);
      run_votes(mask, predicates, ballot.data(), any.data(), all.data());
      for (int lane = 0; lane < 32; ++lane) {
        if ((mask >> lane & 1) != 0) {
          ASSERT_EQ(ballot[lane], mask & predicates);
          ASSERT_EQ(any[lane] != 0, (mask & predicates) != 0);
          ASSERT_EQ(all[lane] != 0, (mask & ~predicates) == 0);
        }
      }
    }
  }
}

// Manual, ldmatrix: thread t holds of matrix i the elements of row t / 4 at 2 (t % 4) and the next
// one; .trans loads each matrix in column-major order.
TEST_P(Primitives, LoadMatrix) {
  std::vector<uint16_t> tile(32 * 8);
  for (size_t i = 0; i < tile.size(); ++i) {
    tile[i] = static_cast<uint16_t>(i * 257 + 3);
  }
  for (const bool transposed : {false, true}) {
    std::vector<uint32_t> fragment(32 * 4);
    run_load_matrix(tile.data(), transposed, fragment.data());
    for (int t = 0; t < 32; ++t) {
      for (int i = 0; i < 4; ++i) {
        for (int half_word = 0; half_word < 2; ++half_word) {
          int row = t / 4, column = 2 * (t % 4) + half_word;
          if (transposed) {
            std::swap(row, column);
          }
          const uint32_t want = tile[(i * 8 + row) * 8 + column];
          ASSERT_EQ(fragment[t * 4 + i] >> 16 * half_word & 0xffff, want) << t << " " << i;
        }
      }
    }
  }
}

// Manual, mma.m16n8k16, with groupID = lane >> 2 and threadID_in_group = lane % 4:
//   a_i: row groupID for i in {0, 1, 4, 5}, else groupID + 8;
//        column (threadID_in_group * 2) + (i & 1), + 8 for i >= 4
//   b_i: row (threadID_in_group * 2) + (i & 1), + 8 for i >= 2; column groupID
//   c_i: row groupID for i < 2, else groupID + 8; column (threadID_in_group * 2) + (i & 1)
template <class T>
void check_product() {
  float a[16][16], b[16][8], c[16][8];
  std::vector<uint32_t> a_bits(128), b_bits(64);
  std::vector<float> d(128);
  for (int i = 0; i < 16; ++i) {
    for (int k = 0; k < 16; ++k) {
      a[i][k] = static_cast<float>((i * 16 + k) * 7 % 19 - 9) / 4;
    }
    for (int j = 0; j < 8; ++j) {
      b[i][j] = static_cast<float>((i * 8 + j) * 5 % 23 - 11) / 2;
      c[i][j] = static_cast<float>(i - 3 * j);
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    const int group = lane >> 2, in_group = lane % 4;
    for (int i = 0; i < 8; ++i) {
      const bool upper = i == 0 || i == 1 || i == 4 || i == 5;
      const float value = a[upper ? group : group + 8][in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0)];
      a_bits[lane * 4 + i / 2] |= static_cast<uint32_t>(T(value).bits) << 16 * (i % 2);
    }
    for (int i = 0; i < 4; ++i) {
      const float value = b[in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0)][group];
      b_bits[lane * 2 + i / 2] |= static_cast<uint32_t>(T(value).bits) << 16 * (i % 2);
      d[lane * 4 + i] = c[i < 2 ? group : group + 8][in_group * 2 + (i & 1)];
    }
  }
  run_product(std::is_same_v<T, bfloat16>, a_bits.data(), b_bits.data(), d.data());
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const int row = (lane >> 2) + (i < 2 ? 0 : 8), column = lane % 4 * 2 + (i & 1);
      float want = c[row][column];
      for (int k = 0; k < 16; ++k) {
        want += a[row][k] * b[k][column];  // exact: all are small multiples of 1/8
      }
      ASSERT_EQ(d[lane * 4 + i], want) << row << " " << column;
    }
  }
}
TEST_P(Primitives, ProductF16) { check_product<half>(); }
TEST_P(Primitives, ProductBf16) { check_product<bfloat16>(); }

// Every f16 value as it passes through mma.sync.
TEST_P(Primitives, ProductReadsEveryHalf) {
  for (uint32_t bits = 0; bits < 65536; bits += 13) {
    std::vector<uint32_t> a(128), b(64);
    std::vector<float> d(128);
    a[0] = bits;             // row 0, column 0
    b[0] = half(1.0f).bits;  // row 0, column 0
    run_product(false, a.data(), b.data(), d.data());
    const float want = static_cast<float>(half::from_bits(static_cast<uint16_t>(bits)));
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(d[0])) << bits;
    } else {
      ASSERT_EQ(d[0], want) << bits;
    }
  }
}

TEST_P(Primitives, AsynchronousCopy) {
  alignas(16) unsigned char source[16];
  for (int i = 0; i < 16; ++i) {
    source[i] = static_cast<unsigned char>(i + 1);
  }
  for (const bool late : {true, false}) {
    Options now = options();
    now.late_async = late;
    const WithOptions with(now);
    for (const int bytes : {16, 8, 3, 0}) {
      unsigned char before[16] = {}, after[16] = {};
      run_copy(source, bytes, before, after);
      for (int i = 0; i < 16; ++i) {
        ASSERT_EQ(after[i], i < bytes ? i + 1 : 0);
        if (!has_race_detector()) {
          ASSERT_EQ(before[i], late ? 0xff : after[i]);
        }
      }
    }
  }
}

TEST_P(Primitives, Atomics) {
  for (const int os_threads : {1, 4}) {
    Options now = options();
    now.os_threads = os_threads;
    const WithOptions with(now);
    AtomicResults r{};
    run_atomics(7, 96, &r);
    const int n = 7 * 96;
    EXPECT_EQ(r.f, 0.5f * n);
    EXPECT_EQ(r.d, 0.25 * n);
    EXPECT_EQ(r.i, -n);
    EXPECT_EQ(r.u, 3u * n);
    EXPECT_EQ(r.l, static_cast<unsigned long long>(n) << 33);
    EXPECT_EQ(r.highest, static_cast<unsigned>(n - 1));
    EXPECT_EQ(r.bits, ~0u);
    EXPECT_EQ(r.swaps, static_cast<unsigned>(n));
  }
}

TEST_P(Primitives, ShapesOfBlocks) {
  for (const dim3 block :
       {dim3(1), dim3(33), dim3(1024), dim3(5, 7), dim3(3, 4, 5), dim3(1, 1, 64), dim3(1, 1024)}) {
    const dim3 grid(2, 3, 2);
    const unsigned threads = block.x * block.y * block.z;
    std::vector<unsigned> y(size_t{12} * threads, ~0u);
    run_indices(grid, block, y.data());
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(y[i], i % threads);
    }
  }
}

TEST_P(Primitives, NamedBarriers) {
  std::vector<int> y(128);
  run_named_barriers(10, y.data());
  for (int i = 0; i < 128; ++i) {
    EXPECT_EQ(y[i], (i % 64 + 33 * (10 + i / 64)) % 64);
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, Primitives,
                         testing::Values(Schedule::forward, Schedule::reverse, Schedule::random));

// half is for storage: arithmetic on it does not compile.
template <class T>
constexpr bool has_arithmetic = requires(T a, T b) {
  a + b;
}
|| requires(T a, T b) { a - b; }
|| requires(T a, T b) { a* b; }
|| requires(T a, T b) { a / b; }
|| requires(T a, T b) { a += b; }
|| requires(T a, T b) { a < b; }
|| requires(T a, T b) { -a; }
|| requires(T a, float b) { a + b; }
|| requires(T a, int b) { a* b; };
static_assert(has_arithmetic<float>);
static_assert(!has_arithmetic<half> && !has_arithmetic<bfloat16>);
static_assert(!std::is_convertible_v<half, float> && !std::is_convertible_v<float, half>);

}  // namespace
}  // namespace binade::kernels::host
