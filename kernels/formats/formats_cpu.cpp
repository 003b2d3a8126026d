// The format lab on the CPU. Elements, blocks and sums are independent of each other, so the split
// over threads changes no bit.
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/formats/format_values.h>
#include <binade/kernels/formats/formats.h>

#include <algorithm>

namespace binade::kernels {

void cpu::round_to_format(const RoundToFormat& a) {
  check_arguments(a);
  const double scale = scale_or_one(a.scale.as<float>());
  const FormatRandom random{a.seed, a.offset, a.advance.as<int64_t>()};
  dispatch_floating("round_to_format", a.x.dtype, [&]<class T>(Type<T>) {
    const T* x = a.x.as<T>();
    T* y = a.y.as<T>();
    parallel_for(a.x.numel, 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        y[i] = static_cast<T>(round_scaled(static_cast<double>(x[i]), scale, a.grid, a.rounding,
                                           random.at(a.rounding, static_cast<uint64_t>(i))));
      }
    });
  });
}

void cpu::round_blocks(const RoundBlocks& a) {
  check_arguments(a);
  if (a.x.numel == 0) {
    return;
  }
  const FormatBlock rule{
      a.grid, a.scales, a.rule, a.rounding, {a.seed, a.offset, a.advance.as<int64_t>()}};
  const double second = scale_or_one(a.scale.as<float>());
  const int64_t blocks = (a.length + a.block - 1) / a.block, per_outer = blocks * a.inner;
  const int64_t items = a.x.numel / (a.length * a.inner) * per_outer;
  dispatch_floating("round_blocks", a.x.dtype, [&]<class T>(Type<T>) {
    parallel_for(items, std::max<int64_t>(1, 4096 / a.block), [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t outer = item / per_outer, block = item % per_outer / a.inner;
        const int64_t start = block * a.block;
        rule.run(a.x.as<T>(), a.y.as<T>(), (outer * a.length + start) * a.inner + item % a.inner,
                 std::min(a.block, a.length - start), a.inner, second);
      }
    });
  });
}

void cpu::accumulate_matmul(const AccumulateMatmul& a) {
  check_arguments(a);
  const FormatSum rule{
      a.grid, a.rounding, a.order, a.chunk, {a.seed, a.offset, a.advance.as<int64_t>()}};
  const int64_t k = a.a.size(1), n = a.b.size(1);
  dispatch_floating("accumulate_matmul", a.a.dtype, [&]<class T>(Type<T>) {
    const T* left = a.a.as<T>();
    const T* right = a.b.as<T>();
    T* y = a.y.as<T>();
    parallel_for(a.y.numel, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, k)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t element = begin; element < end; ++element) {
                     const int64_t row = element / n * k, column = element % n;
                     y[element] = static_cast<T>(rule.run(element, k, [&](int64_t i) {
                       return static_cast<double>(left[row + i]) *
                              static_cast<double>(right[i * n + column]);
                     }));
                   }
                 });
  });
}

}  // namespace binade::kernels
