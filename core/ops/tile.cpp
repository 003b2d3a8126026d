// repeat and tile, made of views and one copy.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/checks_internal.h>
#include <binade/core/ops/tile.h>

namespace binade {
namespace {

// x as [outer, size, inner] around dimension d, repeated n times there.
Tensor repeat_dim(const Tensor& x, int d, int64_t n) {
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < x.dim(); ++i) {
    outer *= i < d ? x.sizes()[i] : 1;
    inner *= i > d ? x.sizes()[i] : 1;
  }
  const int64_t size = x.sizes()[d];
  Dims sizes = x.sizes();
  sizes[d] = element_count({size, n}, "repeat");
  return reshape(expand(reshape(x, {outer, 1, size, inner}), {outer, n, size, inner}), sizes);
}

}  // namespace

Tensor repeat(const Tensor& x, const Dims& repeats) {
  check_defined("repeat", x);
  check(repeats.size() >= x.dim(), "repeat: got repeats ", repeats, " for shape ", x.sizes(),
        ", expected one or more for each dimension");
  const int rank = repeats.size(), lead = rank - x.dim();
  Dims from = Dims::of(rank, 1), pairs, expanded, sizes;
  for (int d = 0; d < rank; ++d) {
    check(repeats[d] >= 0, "repeat: got repeats ", repeats, ", expected numbers of at least 0");
    from[d] = d < lead ? 1 : x.sizes()[d - lead];
    sizes.push_back(element_count({from[d], repeats[d]}, "repeat"));
  }
  Tensor y = reshape(x, from);
  if (2 * rank <= kMaxDims) {
    for (int d = 0; d < rank; ++d) {
      pairs.push_back(1);
      pairs.push_back(from[d]);
      expanded.push_back(repeats[d]);
      expanded.push_back(from[d]);
    }
    return contiguous(reshape(expand(reshape(y, pairs), expanded), sizes));
  }
  for (int d = rank - 1; d >= 0; --d) {
    y = repeats[d] == 1 ? y : repeat_dim(y, d, repeats[d]);
  }
  return contiguous(y);
}

Tensor tile(const Tensor& x, const Dims& repeats) {
  check_defined("tile", x);
  Dims all;
  for (int d = repeats.size(); d < x.dim(); ++d) {
    all.push_back(1);
  }
  for (int64_t n : repeats) {
    check(n >= 0, "tile: got repeats ", repeats, ", expected numbers of at least 0");
    all.push_back(n);
  }
  return repeat(x, all);
}

}  // namespace binade
