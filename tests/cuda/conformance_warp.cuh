// Conformance of warp operations: matrix loads, tensor-core products, shuffles and votes. The
// references follow the PTX manual.
#pragma once
#include <tests/cuda/conformance.h>

namespace binade::conformance {

using kernels::dev::shared_mem;

// ldmatrix: 64 rows of 8 elements in shared memory, of which `rows` selects 32 (lane by lane).
struct RowsSmem {
  alignas(16) uint16_t rows[64][8];
};
__global__ void load_matrix_kernel(const uint16_t* memory, const int* rows, bool transposed,
                                   uint32_t* fragments) {
  auto& smem = shared_mem<RowsSmem>();
  const auto lane = static_cast<int>(threadIdx.x);
  for (int i = lane; i < 64 * 8; i += 32) {
    smem.rows[i / 8][i % 8] = memory[i];
  }
  __syncthreads();
  uint32_t r[4];
  if (transposed) {
    kernels::dev::ldmatrix_x4_trans(r, smem.rows[rows[lane]]);
  } else {
    kernels::dev::ldmatrix_x4(r, smem.rows[rows[lane]]);
  }
  for (int i = 0; i < 4; ++i) {
    fragments[4 * lane + i] = r[i];
  }
}

inline void matrix_loads(Report& report) {
  std::mt19937 generator(7);
  for (const bool transposed : {false, true}) {
    for (int trial = 0; trial < 4; ++trial) {
      const std::vector<uint16_t> memory = random_bits(64 * 8, static_cast<uint32_t>(trial));
      std::vector<int> rows(32);
      for (int i = 0; i < 32; ++i) {
        rows[static_cast<size_t>(i)] = trial == 0 ? i : static_cast<int>(generator() % 64);
      }
      const OnDevice<uint16_t> m(memory);
      const OnDevice<int> r(rows);
      const OnDevice<uint32_t> out(128);
      start({"load_matrix_kernel", dim3(1), dim3(32), sizeof(RowsSmem)}, load_matrix_kernel,
            m.data(), r.data(), transposed, out.data());
      // Register i of a lane holds two adjacent elements of row lane / 4 of matrix i, or of that
      // column.
      std::vector<uint32_t> want(128);
      const auto element = [&](int matrix, int row, int column) -> uint32_t {
        return memory[static_cast<size_t>(rows[static_cast<size_t>(8 * matrix + row)] * 8 +
                                          column)];
      };
      for (int lane = 0; lane < 32; ++lane) {
        for (int i = 0; i < 4; ++i) {
          const int a = lane / 4, b = 2 * (lane % 4);
          want[static_cast<size_t>(4 * lane + i)] =
              transposed ? element(i, b, a) | element(i, b + 1, a) << 16
                         : element(i, a, b) | element(i, a, b + 1) << 16;
        }
      }
      report.same(text("ldmatrix.x4", transposed ? ".trans" : "", trial == 0 ? "" : " any rows ",
                       trial == 0 ? std::string() : text(trial)),
                  out.get(), want);
    }
  }
}

// d = a b + c for one tile: a 16x16 row-major, b 16x8 row-major here, c and d 16x8.
template <class T>
__global__ void product_kernel(const uint16_t* a, const uint16_t* b, const float* c, float* d) {
  const auto lane = static_cast<int>(threadIdx.x);
  const int group = lane / 4, pair = 2 * (lane % 4);
  const auto two = [](uint16_t low, uint16_t high) {
    return static_cast<uint32_t>(low) | static_cast<uint32_t>(high) << 16;
  };
  uint32_t ra[4], rb[2];
  for (int i = 0; i < 4; ++i) {
    const uint16_t* row = a + (group + 8 * (i % 2)) * 16 + pair + 8 * (i / 2);
    ra[i] = two(row[0], row[1]);
  }
  for (int i = 0; i < 2; ++i) {
    const uint16_t* column = b + (pair + 8 * i) * 8 + group;
    rb[i] = two(column[0], column[8]);
  }
  float rd[4];
  for (int i = 0; i < 4; ++i) {
    rd[i] = c[(group + 8 * (i / 2)) * 8 + pair + i % 2];
  }
  kernels::dev::mma_m16n8k16<T>(rd, ra, rb);
  for (int i = 0; i < 4; ++i) {
    d[(group + 8 * (i / 2)) * 8 + pair + i % 2] = rd[i];
  }
}

template <class T>
void products(Report& report, const char* type) {
  if (!has_sm80() && std::is_same_v<T, bfloat16>) {
    report.skip(text("mma m16n8k16 ", type), "needs sm_80");
    return;
  }
  // Small integers: exact. Normal numbers: within the error of f32 sums that truncate instead of
  // rounding. Powers of two down to the smallest f16: subnormal operands are not flushed.
  for (const char* values : {"integers", "normal", "tiny"}) {
    std::mt19937 generator(11);
    const auto draw = [&]() -> float {
      switch (values[0]) {
        case 'i': return static_cast<float>(static_cast<int>(generator() % 17) - 8);
        case 'n': return std::normal_distribution<float>()(generator);
        default: return std::ldexp(1.0f, -15 - static_cast<int>(generator() % 10));
      }
    };
    std::vector<uint16_t> a(16 * 16), b(16 * 8);
    std::vector<float> c(16 * 8);
    for (uint16_t& x : a) {
      x = T(draw()).bits;
    }
    for (uint16_t& x : b) {
      x = T(values[0] == 't' ? 1.0f : draw()).bits;
    }
    for (float& x : c) {
      x = values[0] == 't' ? 0.0f : draw();
    }
    const OnDevice<uint16_t> da(a), db(b);
    const OnDevice<float> dc(c), dd(c.size());
    start({"product_kernel", dim3(1), dim3(32)}, product_kernel<T>, da.data(), db.data(), dc.data(),
          dd.data());
    const std::vector<float> got = dd.get();
    double worst = 0;
    for (size_t i = 0; i < 16; ++i) {
      for (size_t j = 0; j < 8; ++j) {
        double sum = c[i * 8 + j], size = std::abs(sum);
        for (size_t k = 0; k < 16; ++k) {
          const double product = static_cast<double>(T::from_bits(a[i * 16 + k])) *
                                 static_cast<double>(T::from_bits(b[k * 8 + j]));
          sum += product;
          size += std::abs(product);
        }
        const double error = std::abs(got[i * 8 + j] - sum) / size;
        worst = error <= worst ? worst : error;  // a NaN stays
      }
    }
    const double bound = values[0] == 'n' ? 0x1p-19 : 0;
    report.result(text("mma m16n8k16 ", type, " ", values), worst <= bound,
                  text("error ", worst, ", bound ", bound));
  }
}

inline void tensor_core(Report& report) {
  products<half>(report, "f16");
  products<bfloat16>(report, "bf16");
}

// Shuffles: mode 0 index, 1 up, 2 down, 3 exclusive or.
template <class T, int kMode>
__global__ void shuffle_kernel(const T* x, T* y, int argument, int width) {
  const T value = x[threadIdx.x];
  if constexpr (kMode == 0) {
    y[threadIdx.x] = __shfl_sync(~0u, value, argument, width);
  } else if constexpr (kMode == 1) {
    y[threadIdx.x] = __shfl_up_sync(~0u, value, static_cast<unsigned>(argument), width);
  } else if constexpr (kMode == 2) {
    y[threadIdx.x] = __shfl_down_sync(~0u, value, static_cast<unsigned>(argument), width);
  } else {
    y[threadIdx.x] = __shfl_xor_sync(~0u, value, argument, width);
  }
}

// The lane that is read; the clamp keeps it in the segment, or for exclusive or in no later one.
inline int shuffle_source(int mode, int lane, int argument, int width) {
  const int begin = lane / width * width, end = begin + width;
  switch (mode) {
    case 0: return begin + (argument & (width - 1));
    case 1: return lane - argument < begin ? lane : lane - argument;
    case 2: return lane + argument >= end ? lane : lane + argument;
    default: return (lane ^ argument) >= end ? lane : lane ^ argument;
  }
}

template <class T, int kMode>
void shuffle_mode(Report& report, const char* name, const char* type) {
  std::vector<T> x(32);
  for (size_t i = 0; i < 32; ++i) {
    x[i] = static_cast<T>(1000003) * static_cast<T>(i + 1);
  }
  const OnDevice<T> dx(x);
  std::vector<T> got, want;
  for (const int width : {1, 2, 4, 8, 16, 32}) {
    for (int argument = 0; argument < 32; ++argument) {
      const OnDevice<T> dy(32);
      start({"shuffle_kernel", dim3(1), dim3(32)}, shuffle_kernel<T, kMode>, dx.data(), dy.data(),
            argument, width);
      for (const T& value : dy.get()) {
        got.push_back(value);
      }
      for (int lane = 0; lane < 32; ++lane) {
        want.push_back(x[static_cast<size_t>(shuffle_source(kMode, lane, argument, width))]);
      }
    }
  }
  report.same(text(name, " ", type, " all widths"), got, want);
}

template <class T>
void shuffle_type(Report& report, const char* type) {
  shuffle_mode<T, 0>(report, "__shfl_sync", type);
  shuffle_mode<T, 1>(report, "__shfl_up_sync", type);
  shuffle_mode<T, 2>(report, "__shfl_down_sync", type);
  shuffle_mode<T, 3>(report, "__shfl_xor_sync", type);
}

inline void shuffles(Report& report) {
  shuffle_type<int>(report, "int");
  shuffle_type<float>(report, "float");
  shuffle_type<unsigned long long>(report, "u64");
  shuffle_type<double>(report, "double");
}

// Votes of whole warps, then of the lanes that took a branch.
__global__ void vote_kernel(const int* votes, unsigned* ballots, int* any, int* all,
                            unsigned* part) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  const bool vote = votes[i] != 0;
  ballots[i] = __ballot_sync(~0u, vote);
  any[i] = __any_sync(~0u, vote);
  all[i] = __all_sync(~0u, vote);
  part[i] = 0;
  if (lane < 12) {
    const unsigned sum = __shfl_xor_sync(0xfffu, lane, 1) + 1;
    part[i] = __ballot_sync(0xfffu, vote) + 4096 * sum;
  }
}

inline void votes(Report& report) {
  constexpr size_t kThreads = 64 * 4;
  std::mt19937 generator(3);
  std::vector<int> in(kThreads), any(kThreads), all(kThreads);
  std::vector<unsigned> ballots(kThreads), part(kThreads);
  for (size_t i = 0; i < kThreads; ++i) {
    const size_t warp = i / 32;  // two warps vote alike
    in[i] = warp == 0 ? 0 : warp == 1 ? 5 : static_cast<int>(generator() % 2);
  }
  for (size_t i = 0; i < kThreads; ++i) {
    for (size_t lane = 0; lane < 32; ++lane) {
      ballots[i] |= static_cast<unsigned>(in[i / 32 * 32 + lane] != 0) << lane;
    }
    any[i] = ballots[i] != 0;
    all[i] = ballots[i] == ~0u;
    const auto lane = static_cast<unsigned>(i % 32);
    part[i] = lane < 12 ? (ballots[i] & 0xfffu) + 4096 * ((lane ^ 1u) + 1) : 0;
  }
  const OnDevice<int> d_in(in), d_any(kThreads), d_all(kThreads);
  const OnDevice<unsigned> d_ballots(kThreads), d_part(kThreads);
  start({"vote_kernel", dim3(4), dim3(64)}, vote_kernel, d_in.data(), d_ballots.data(),
        d_any.data(), d_all.data(), d_part.data());
  report.same("__ballot_sync", d_ballots.get(), ballots);
  // Any and all return 0 or any other value.
  const auto truth = [](std::vector<int> values) {
    for (int& value : values) {
      value = value != 0;
    }
    return values;
  };
  report.same("__any_sync", truth(d_any.get()), any);
  report.same("__all_sync", truth(d_all.get()), all);
  report.same("collectives of 12 lanes", d_part.get(), part);
}

}  // namespace binade::conformance
