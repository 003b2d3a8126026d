#include <binade/kernels/index/index_internal.h>

namespace binade::kernels {
namespace {

// `wide` has the sizes of index except at dimension dim.
void check_index(const char* op, const View& index, const View& same, const View& wide, int dim) {
  check(index.dtype == DType::i64 && index.sizes == same.sizes, op, ": got an index ", index.dtype,
        " ", index.sizes, ", expected i64 ", same.sizes);
  check(dim >= 0 && dim < index.dim() && wide.dim() == index.dim() && wide.dtype == same.dtype, op,
        ": got ", wide.dtype, " ", wide.sizes, " and ", same.dtype, " ", same.sizes,
        " with dimension ", dim, ", expected one dtype and equal ranks");
  for (int d = 0; d < index.dim(); ++d) {
    check(d == dim || wide.size(d) == index.size(d), op, ": got sizes ", wide.sizes,
          " and indices of sizes ", index.sizes, ", expected equal sizes but in dimension ", dim);
  }
}

}  // namespace

void check_arguments(const Gather& a) {
  check_index(a.op, a.index, a.y, a.x, a.dim);
  check(a.y.contiguous, a.op, ": got a result that is not contiguous");
}

void check_arguments(const ScatterAdd& a) {
  check_index(a.op, a.index, a.src, a.y, a.dim);
  const bool integer = a.y.dtype == DType::i64 || a.y.dtype == DType::i32;
  check(a.y.contiguous && (is_floating(a.y.dtype) || integer), a.op, ": got a result of dtype ",
        a.y.dtype, a.y.contiguous ? "" : ", not contiguous",
        ", expected a contiguous one of a floating dtype, i64 or i32");
}

void check_arguments(const Scatter& a) { check_index(a.op, a.index, a.src, a.y, a.dim); }

void check_arguments(const OneHot& a) {
  bool matches = a.index.dtype == DType::i64 && a.y.dtype == DType::i64 && a.y.contiguous &&
                 a.y.dim() == a.index.dim() + 1;
  for (int d = 0; matches && d < a.index.dim(); ++d) {
    matches = a.index.size(d) == a.y.size(d);
  }
  check(matches, "one_hot: got an index ", a.index.dtype, " ", a.index.sizes, " and a result ",
        a.y.dtype, " ", a.y.sizes, ", expected i64 [...] and contiguous i64 [..., classes]");
}

IndexShape index_shape(const View& index, int dim, int64_t bound) {
  IndexShape shape{.count = index.size(dim), .bound = bound, .rows = true, .index_inner = 1};
  for (int d = 0; d < index.dim(); ++d) {
    shape.outer *= d < dim ? index.size(d) : 1;
    shape.inner *= d > dim ? index.size(d) : 1;
    shape.rows = shape.rows && (d <= dim || index.size(d) == 1 || index.strides[d] == 0);
  }
  shape.index_inner = shape.rows ? 1 : shape.inner;
  return shape;
}

View distinct_indices(const View& index, int dim, const IndexShape& shape) {
  View view = index;
  if (shape.rows && shape.inner > 0) {
    const auto rank = static_cast<size_t>(dim) + 1;
    view.sizes = Dims(std::span(index.sizes.begin(), rank));
    view.strides = Dims(std::span(index.strides.begin(), rank));
    view.numel = element_count(view.sizes);
    view.contiguous = is_row_major(view.sizes, view.strides);
  }
  return view;
}

View target_lines(const Scatter& a) {
  View lines = a.y;
  lines.sizes = a.index.sizes;
  lines.numel = a.index.numel;
  lines.strides[a.dim] = 0;
  lines.contiguous = false;
  return lines;
}

}  // namespace binade::kernels
