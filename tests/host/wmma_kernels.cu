#include <binade/kernels/host/wmma.h>
#include <tests/host/host_launch.h>
#include <tests/host/wmma_kernels.h>

#include <vector>

namespace binade::kernels::host {
namespace {

namespace wmma = nvcuda::wmma;

template <class T, class D, int m, int n, int k, class LayoutA, class LayoutB>
__global__ void product_kernel(const T* a, const T* b, D* d, int lda, int ldb, int ldd,
                               bool d_rows) {
  using Type = std::conditional_t<std::is_same_v<T, float>, wmma::precision::tf32, T>;
  wmma::fragment<wmma::matrix_a, m, n, k, Type, LayoutA> fa;
  wmma::fragment<wmma::matrix_b, m, n, k, Type, LayoutB> fb;
  wmma::fragment<wmma::accumulator, m, n, k, D> fd;
  const auto layout = d_rows ? wmma::mem_row_major : wmma::mem_col_major;
  wmma::load_matrix_sync(fa, a, lda);
  wmma::load_matrix_sync(fb, b, ldb);
  wmma::load_matrix_sync(fd, d, ldd, layout);
  wmma::mma_sync(fd, fa, fb, fd);
  wmma::store_matrix_sync(d, fd, ldd, layout);
}

// A matrix in memory, rows or columns padded by 16 bytes.
template <class T>
struct Stored {
  Stored(const float* from, int rows, int cols, bool row_major)
      : rows(rows), cols(cols), row_major(row_major) {
    const int unit = static_cast<int>(16 / sizeof(T));
    stride = ((row_major ? cols : rows) + unit - 1) / unit * unit + unit;
    data.resize(static_cast<size_t>(stride * (row_major ? rows : cols)) + 64);
    const size_t skip = (32 - reinterpret_cast<uintptr_t>(data.data()) % 32) % 32 / sizeof(T);
    begin = data.data() + skip;
    for (int row = 0; row < rows; ++row) {
      for (int col = 0; col < cols; ++col) {
        at(row, col) = static_cast<T>(from[row * cols + col]);
      }
    }
  }
  T& at(int row, int col) { return begin[row_major ? row * stride + col : col * stride + row]; }

  int rows, cols, stride;
  bool row_major;
  std::vector<T> data;
  T* begin;
};

template <class T, class D, int m, int n, int k>
bool run_shape(const WmmaCase& c, const float* a, const float* b, const float* sum, float* d) {
  Stored<T> in_a(a, m, k, c.a_rows), in_b(b, k, n, c.b_rows);
  Stored<D> out(sum, m, n, c.d_rows);
  using Row = wmma::row_major;
  using Col = wmma::col_major;
  const auto start = [&](auto kernel) {
    run({"product_kernel", 1, 32, 0}, kernel, in_a.begin, in_b.begin, out.begin, in_a.stride,
        in_b.stride, out.stride, c.d_rows);
  };
  if (c.a_rows) {
    c.b_rows ? start(product_kernel<T, D, m, n, k, Row, Row>)
             : start(product_kernel<T, D, m, n, k, Row, Col>);
  } else {
    c.b_rows ? start(product_kernel<T, D, m, n, k, Col, Row>)
             : start(product_kernel<T, D, m, n, k, Col, Col>);
  }
  for (int row = 0; row < m; ++row) {
    for (int col = 0; col < n; ++col) {
      d[row * n + col] = static_cast<float>(out.at(row, col));
    }
  }
  return true;
}

template <class T, class D>
bool run_types(const WmmaCase& c, const float* a, const float* b, const float* sum, float* d) {
  if (c.m == 16 && c.n == 16) {
    return run_shape<T, D, 16, 16, 16>(c, a, b, sum, d);
  }
  return c.m == 32 ? run_shape<T, D, 32, 8, 16>(c, a, b, sum, d)
                   : run_shape<T, D, 8, 32, 16>(c, a, b, sum, d);
}

__global__ void fill_and_scale_kernel(float value, float factor, float* y) {
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> f;
  wmma::fill_fragment(f, value);
  for (int i = 0; i < f.num_elements; ++i) {
    f.x[i] *= factor;
  }
  wmma::store_matrix_sync(y, f, 16, wmma::mem_row_major);
}

__global__ void large_sum_kernel(int c, signed char a, signed char b, bool saturates, int* y) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, int> fd;
  wmma::fill_fragment(fa, a);
  wmma::fill_fragment(fb, b);
  wmma::fill_fragment(fd, c);
  wmma::mma_sync(fd, fa, fb, fd, saturates);
  wmma::store_matrix_sync(y, fd, 16, wmma::mem_row_major);
}

__global__ void half_warp_kernel(float* y) {
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> f;
  wmma::fill_fragment(f, 1);
  if (threadIdx.x < 16) {
    wmma::store_matrix_sync(y, f, 16, wmma::mem_row_major);
  }
}

}  // namespace

bool run_wmma(const WmmaCase& c, const float* a, const float* b, const float* sum, float* d) {
  switch (c.types) {
    case WmmaTypes::f16_f32: return run_types<half, float>(c, a, b, sum, d);
    case WmmaTypes::f16_f16: return run_types<half, half>(c, a, b, sum, d);
    case WmmaTypes::bf16_f32: return run_types<bfloat16, float>(c, a, b, sum, d);
    case WmmaTypes::s8_s32: return run_types<signed char, int>(c, a, b, sum, d);
    case WmmaTypes::tf32_f32: return run_shape<float, float, 16, 16, 8>(c, a, b, sum, d);
  }
  return false;
}

float run_fill_and_scale(float value, float factor) {
  alignas(32) static float y[256];
  run({"fill_and_scale_kernel", 1, 32, 0}, fill_and_scale_kernel, value, factor, y);
  return y[200];
}

int run_large_sum(int c, signed char a, signed char b, bool saturates) {
  alignas(32) static int y[256];
  run({"large_sum_kernel", 1, 32, 0}, large_sum_kernel, c, a, b, saturates, y);
  return y[137];
}

void run_half_of_a_warp() {
  alignas(32) static float y[256];
  run({"half_warp_kernel", 1, 32, 0}, half_warp_kernel, y);
}

}  // namespace binade::kernels::host
