// nvcuda::wmma (mma.h of CUDA) on the executor: matrix products of a whole warp, on fragments of
// f16, bf16, tf32, s8 and u8 with accumulators of f32, f16 or s32. CUDA C++ Programming Guide,
// "Warp Matrix Functions". Which lane holds which element is not specified there; here each 8 x 8
// tile lies in the lanes as PTX's mma instructions have it. The element types convert to and from
// float with static_cast. Shapes (m, n, k): 16x16x16, 32x8x16, 8x32x16; tf32 16x16x8.
#pragma once
#include <binade/kernels/host/primitives.h>

namespace binade::kernels::host {

enum class WmmaUse : uint8_t { a, b, accumulator };

// A tile of a warp, and which element of it each lane holds.
struct WmmaTile {
  WmmaUse use;
  int rows, cols;
  int elements() const { return rows * cols / 32; }  // of a lane
};
struct WmmaPosition {
  int row, col;
};
WmmaPosition wmma_position(const WmmaTile& tile, int lane, int element);

// A lane of load_matrix_sync() or store_matrix_sync(): the elements of its fragment, as they are in
// memory.
struct WmmaMemoryLane {
  WmmaTile tile;
  void* memory;
  void* elements;
  size_t element_bytes;
  int64_t stride;  // elements from a row (or column) of memory to the next
  bool row_major, stores;
};
void wmma_memory_lanes(void* const* lanes, uint32_t mask);

// A lane of mma_sync(): d = a b + c. A sum beyond the range of an integer wraps, or with
// `saturates` becomes the largest or smallest one.
template <class T>
struct WmmaProductLane {
  int m, n, k;
  bool saturates;
  const T *a, *b, *c;
  T* d;
};
void wmma_product_f32_lanes(void* const* lanes, uint32_t mask);  // T is float
void wmma_product_s32_lanes(void* const* lanes, uint32_t mask);  // T is int

float round_to_tf32(float value);  // to nearest
float cut_to_tf32(float value);    // the upper 19 bits, which the product reads

}  // namespace binade::kernels::host

// NOLINTBEGIN(readability-identifier-naming): the names are CUDA's.
namespace nvcuda::wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32;
}

namespace detail {
namespace host = binade::kernels::host;

template <class T>
struct Storage {
  using type = T;
};
template <>
struct Storage<precision::tf32> {
  using type = float;
};

template <class Use, int m, int n, int k>
constexpr host::WmmaTile kTile = {host::WmmaUse::accumulator, m, n};
template <int m, int n, int k>
constexpr host::WmmaTile kTile<matrix_a, m, n, k> = {host::WmmaUse::a, m, k};
template <int m, int n, int k>
constexpr host::WmmaTile kTile<matrix_b, m, n, k> = {host::WmmaUse::b, k, n};

template <class T>
constexpr bool kIsTf32 = std::is_same_v<T, precision::tf32>;
template <class T>
constexpr bool kIsInteger = std::is_integral_v<T>;

template <int m, int n, int k>
constexpr bool kIsShape = (k == 16 &&
                           ((m == 16 && n == 16) || (m == 32 && n == 8) || (m == 8 && n == 32))) ||
                          (k == 8 && m == 16 && n == 16);

template <class To, class From>
To convert(From value) {
  return static_cast<To>(value);
}
}  // namespace detail

template <class Use, int m, int n, int k, class T, class Layout = void>
class fragment {
  static_assert(detail::kIsShape<m, n, k>,
                "wmma has the shapes 16x16x16, 32x8x16, 8x32x16; "
                "with tf32 16x16x8");

 public:
  using element_type = T;
  using storage_element_type = typename detail::Storage<T>::type;
  static constexpr int num_elements =
      detail::kTile<Use, m, n, k>.rows * detail::kTile<Use, m, n, k>.cols / 32;
  static constexpr int num_storage_elements = num_elements;
  storage_element_type x[num_elements];
};

template <class Use, int m, int n, int k, class T, class Layout, class V>
void fill_fragment(fragment<Use, m, n, k, T, Layout>& f, const V& value) {
  for (auto& element : f.x) {
    element = static_cast<typename detail::Storage<T>::type>(value);
  }
}

namespace detail {
template <class Use, int m, int n, int k, class Fragment, class Memory>
void move_tile(Fragment& f, Memory* memory, unsigned stride, bool rows, bool stores,
               host::Site site) {
  host::WmmaMemoryLane lane{kTile<Use, m, n, k>,
                            const_cast<std::remove_const_t<Memory>*>(memory),
                            const_cast<std::remove_const_t<Memory>*>(f.x),
                            sizeof(f.x[0]),
                            stride,
                            rows,
                            stores};
  const char* what = stores ? "store_matrix_sync" : "load_matrix_sync";
  host::collective({~0u, host::wmma_memory_lanes, what, false}, &lane, site);
}
}  // namespace detail

template <class Use, int m, int n, int k, class T, class Layout>
void load_matrix_sync(fragment<Use, m, n, k, T, Layout>& f,
                      const typename detail::Storage<T>::type* p, unsigned ldm, BINADE_SITE) {
  static_assert(!std::is_void_v<Layout>, "an accumulator is loaded with its layout");
  detail::move_tile<Use, m, n, k>(f, p, ldm, std::is_same_v<Layout, row_major>, false, site);
}
template <int m, int n, int k, class T>
void load_matrix_sync(fragment<accumulator, m, n, k, T>& f, const T* p, unsigned ldm,
                      layout_t layout, BINADE_SITE) {
  detail::move_tile<accumulator, m, n, k>(f, p, ldm, layout == mem_row_major, false, site);
}
template <int m, int n, int k, class T>
void store_matrix_sync(T* p, const fragment<accumulator, m, n, k, T>& f, unsigned ldm,
                       layout_t layout, BINADE_SITE) {
  detail::move_tile<accumulator, m, n, k>(f, p, ldm, layout == mem_row_major, true, site);
}

namespace detail {
template <int m, int n, int k, class A, class LayoutA, class B, class LayoutB, class D, class C>
void multiply(fragment<accumulator, m, n, k, D>& d,
              const fragment<matrix_a, m, n, k, A, LayoutA>& a,
              const fragment<matrix_b, m, n, k, B, LayoutB>& b,
              const fragment<accumulator, m, n, k, C>& c, bool saturates, host::Site site) {
  static_assert(std::is_same_v<A, B>, "both factors have one type");
  using T = std::conditional_t<kIsInteger<A>, int, float>;
  T wide_a[m * k / 32], wide_b[k * n / 32], sum[m * n / 32];
  const auto widen = [](T& to, const auto& from) {
    to = convert<T>(from);
    if constexpr (kIsTf32<A>) {
      to = host::cut_to_tf32(to);
    }
  };
  for (int i = 0; i < a.num_elements; ++i) {
    widen(wide_a[i], a.x[i]);
  }
  for (int i = 0; i < b.num_elements; ++i) {
    widen(wide_b[i], b.x[i]);
  }
  for (int i = 0; i < c.num_elements; ++i) {
    sum[i] = convert<T>(c.x[i]);
  }
  host::WmmaProductLane<T> lane{m, n, k, saturates, wide_a, wide_b, sum, sum};
  constexpr host::Exchange kProduct =
      std::is_same_v<T, int> ? host::wmma_product_s32_lanes : host::wmma_product_f32_lanes;
  host::collective({~0u, kProduct, "mma_sync", false}, &lane, site);
  for (int i = 0; i < d.num_elements; ++i) {
    d.x[i] = convert<D>(sum[i]);
  }
}
}  // namespace detail

template <int m, int n, int k, class A, class LayoutA, class B, class LayoutB, class D, class C>
void mma_sync(fragment<accumulator, m, n, k, D>& d,
              const fragment<matrix_a, m, n, k, A, LayoutA>& a,
              const fragment<matrix_b, m, n, k, B, LayoutB>& b,
              const fragment<accumulator, m, n, k, C>& c, BINADE_SITE) {
  detail::multiply(d, a, b, c, false, site);
}
// Only products of integers take `satf`, as in CUDA.
template <int m, int n, int k, class T, class LayoutA, class LayoutB>
requires std::is_integral_v<T>
void mma_sync(fragment<accumulator, m, n, k, int>& d,
              const fragment<matrix_a, m, n, k, T, LayoutA>& a,
              const fragment<matrix_b, m, n, k, T, LayoutB>& b,
              const fragment<accumulator, m, n, k, int>& c, bool satf, BINADE_SITE) {
  detail::multiply(d, a, b, c, satf, site);
}

inline float __float_to_tf32(float value) { return binade::kernels::host::round_to_tf32(value); }

}  // namespace nvcuda::wmma
// NOLINTEND(readability-identifier-naming)
