// CPU random fills and dropout: blocks of consecutive logical elements; views that are not
// row-major go through a contiguous buffer.
#include <binade/kernels/base/element.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/strided.h>
#include <binade/kernels/random/random_internal.h>
#include <binade/kernels/random/random_isa_internal.h>

namespace binade::kernels::cpu {
namespace {

// Calls move(element, i) for the i-th of n logical elements from `first` on.
template <class T, class Move>
void walk(const View& view, int64_t first, int64_t n, const Move& move) {
  int64_t index[kMaxDims];
  int64_t offset = 0;
  for (int d = view.dim() - 1; d >= 0; --d) {
    index[d] = first % view.size(d);
    first /= view.size(d);
    offset += index[d] * view.strides[d];
  }
  for (int64_t i = 0; i < n; ++i) {
    move(view.as<T>()[offset], i);
    for (int d = view.dim() - 1; d >= 0; --d) {
      offset += view.strides[d];
      if (++index[d] < view.size(d)) {
        break;
      }
      offset -= view.size(d) * view.strides[d];
      index[d] = 0;
    }
  }
}

void gather(const View& x, int64_t first, int64_t n, void* block) {
  dispatch_width(x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    walk<T>(x, first, n, [&](T& element, int64_t i) { static_cast<T*>(block)[i] = element; });
  });
}

void scatter(const void* block, const View& y, int64_t first, int64_t n) {
  dispatch_width(y.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    walk<T>(y, first, n, [&](T& element, int64_t i) { element = static_cast<const T*>(block)[i]; });
  });
}

// Calls body(first, n) on blocks of at most kRandomBlock logical elements.
template <class Body>
void for_blocks(int64_t numel, const Body& body) {
  parallel_for((numel + kRandomBlock - 1) / kRandomBlock, 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * kRandomBlock, rest = numel - first;
      body(first, rest < kRandomBlock ? rest : kRandomBlock);
    }
  });
}

void fill(const View& y, Distribution distribution, double low, double high, uint64_t seed,
          uint64_t offset) {
  for_blocks(y.numel, [&](int64_t first, int64_t n) {
    alignas(64) std::byte block[kRandomBlock * 8];
    random_block_best(RandomBlock{.distribution = distribution,
                                  .low = low,
                                  .high = high,
                                  .seed = seed,
                                  .position = offset + static_cast<uint64_t>(first),
                                  .dtype = y.dtype,
                                  .y = y.contiguous ? element(y, first) : block,
                                  .n = n});
    if (!y.contiguous) {
      scatter(block, y, first, n);
    }
  });
}

}  // namespace

void fill_uniform(const FillUniform& a) {
  check_arguments(a);
  fill(a.y, Distribution::uniform, a.low, a.high, a.seed, position_of(a.offset, a.advance));
}

void fill_normal(const FillNormal& a) {
  check_arguments(a);
  fill(a.y, Distribution::normal, a.mean, a.std, a.seed, position_of(a.offset, a.advance));
}

void dropout(const Dropout& a) {
  check_arguments(a);
  const uint64_t offset = position_of(a.offset, a.advance);
  for_blocks(a.y.numel, [&](int64_t first, int64_t n) {
    alignas(64) std::byte x_block[kRandomBlock * 8], y_block[kRandomBlock * 8];
    const void* x = x_block;
    void* y = y_block;
    if (a.x.contiguous) {
      x = element(a.x, first);
    } else {
      gather(a.x, first, n, x_block);
    }
    if (a.y.contiguous) {
      y = element(a.y, first);
    }
    dropout_block_best(DropoutBlock{.p = a.p,
                                    .seed = a.seed,
                                    .position = offset + static_cast<uint64_t>(first),
                                    .dtype = a.y.dtype,
                                    .x = x,
                                    .y = y,
                                    .n = n});
    if (!a.y.contiguous) {
      scatter(y_block, a.y, first, n);
    }
  });
}

}  // namespace binade::kernels::cpu
