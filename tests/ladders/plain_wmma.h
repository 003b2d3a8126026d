// nvcuda::wmma for the executor: 16 x 16 x 16 fragments of __half with sums in float. CUDA leaves
// open which lane holds which element; here element i of a lane is element 32 i + lane of the tile,
// row by row.
#pragma once

namespace nvcuda::wmma {

struct row_major {};
struct col_major {};
struct matrix_a {};
struct matrix_b {};
struct accumulator {};
enum layout_t { mem_row_major, mem_col_major };

template <class Use, int kM, int kN, int kK, class T, class Layout = void>
struct fragment {
  static_assert(kM == 16 && kN == 16 && kK == 16, "fragments here are 16 x 16 x 16");
  using element_type = T;
  static constexpr int num_elements = 8;
  T x[num_elements];
};

template <class Use, class T, class Layout>
void fill_fragment(fragment<Use, 16, 16, 16, T, Layout>& f, std::type_identity_t<T> value) {
  for (T& x : f.x) {
    x = value;
  }
}

namespace detail {
inline unsigned lane() {
  return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32;
}
template <class Layout>
constexpr bool kByColumns = std::is_same_v<Layout, col_major>;

// The place of element i of this lane in memory.
inline size_t place(unsigned i, unsigned stride, bool by_columns) {
  const unsigned element = i * 32 + lane(), row = element / 16, col = element % 16;
  return by_columns ? size_t{col} * stride + row : size_t{row} * stride + col;
}
inline void check_stride(const void* p, unsigned bytes, const char* what) {
  if (reinterpret_cast<uintptr_t>(p) % 32 != 0) {
    binade::kernels::host::fail_kernel(std::string(what) + ": the tile is not aligned to 32 bytes");
  }
  if (bytes % 16 != 0) {
    binade::kernels::host::fail_kernel(std::string(what) +
                                       ": the leading dimension is no multiple of 16 bytes");
  }
}

struct Lane {
  const void *a, *b, *c;
  void* d;
};
// D = A B + C; each lane passes its elements of the tiles.
inline void multiply(void* const* lanes, uint32_t) {
  float a[256], b[256];
  for (int i = 0; i < 256; ++i) {
    const auto& of = *static_cast<const Lane*>(lanes[i % 32]);
    a[i] = static_cast<const plain_cuda::Half*>(of.a)[i / 32].value();
    b[i] = static_cast<const plain_cuda::Half*>(of.b)[i / 32].value();
  }
  for (int i = 0; i < 256; ++i) {
    const auto& of = *static_cast<const Lane*>(lanes[i % 32]);
    float sum = static_cast<const float*>(of.c)[i / 32];
    for (int k = 0; k < 16; ++k) {
      sum += a[i / 16 * 16 + k] * b[k * 16 + i % 16];
    }
    static_cast<float*>(of.d)[i / 32] = sum;
  }
}
}  // namespace detail

template <class Use, class T, class Layout>
void load_matrix_sync(fragment<Use, 16, 16, 16, T, Layout>& f, const T* p, unsigned stride,
                      BINADE_SITE) {
  detail::check_stride(p, stride * sizeof(T), "load_matrix_sync");
  __syncwarp(~0u, site);
  for (unsigned i = 0; i < 8; ++i) {
    f.x[i] = p[detail::place(i, stride, detail::kByColumns<Layout>)];
  }
}
template <class T>
void store_matrix_sync(T* p, const fragment<accumulator, 16, 16, 16, T>& f, unsigned stride,
                       layout_t layout, BINADE_SITE) {
  detail::check_stride(p, stride * sizeof(T), "store_matrix_sync");
  for (unsigned i = 0; i < 8; ++i) {
    p[detail::place(i, stride, layout == mem_col_major)] = f.x[i];
  }
  __syncwarp(~0u, site);
}
template <class LayoutA, class LayoutB>
void mma_sync(fragment<accumulator, 16, 16, 16, float>& d,
              const fragment<matrix_a, 16, 16, 16, plain_cuda::Half, LayoutA>& a,
              const fragment<matrix_b, 16, 16, 16, plain_cuda::Half, LayoutB>& b,
              const fragment<accumulator, 16, 16, 16, float>& c, BINADE_SITE) {
  plain_cuda::count(&plain_cuda::Counts::products);
  detail::Lane lane{a.x, b.x, c.x, d.x};
  binade::kernels::host::collective({~0u, detail::multiply, "mma_sync", false}, &lane, site);
}

}  // namespace nvcuda::wmma
