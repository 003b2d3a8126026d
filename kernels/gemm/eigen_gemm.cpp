// gemm by Eigen on the CPU. The longer side of y is cut into slices whose number and sizes depend
// on the shape only, one Eigen product each, so the bits are the same at any thread count. Operands
// that Eigen cannot read in place, and those of f16 and bf16, are copied first.
#include <binade/kernels/gemm/gemm_eigen_internal.h>

#ifdef BINADE_WITH_EIGEN
#define EIGEN_DONT_PARALLELIZE  // threads come from parallel_for
#define EIGEN_MPL2_ONLY
#include <binade/kernels/base/ceil_div.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/gemm/gemm_internal.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

namespace binade::kernels {
namespace {

constexpr int64_t kSlices = 16, kLeastSide = 32;

// A matrix in Eigen's terms: rows (row_major) or columns are contiguous.
template <class T>
struct Operand {
  T* data;
  int64_t rows, columns, stride;
  bool row_major;

  template <int kOrder>
  auto map(int64_t row, int64_t column, int64_t height, int64_t width) const {
    using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, kOrder>;
    T* first = data + (row_major ? row * stride + column : column * stride + row);
    return Eigen::Map<Matrix, 0, Eigen::OuterStride<>>(first, height, width,
                                                       Eigen::OuterStride<>(stride));
  }
};

template <class T>
Operand<T> operand(const View& view, int64_t matrix) {
  const MatrixStrides s = matrix_strides(view);
  const int dim = view.dim();
  T* data = view.as<T>() + (dim == 3 ? matrix * s.batch : 0);
  const int64_t rows = view.size(dim - 2), columns = view.size(dim - 1);
  const bool row_major = s.column == 1 && s.row >= columns;
  return {data, rows, columns, row_major ? s.row : s.column, row_major};
}

// True if Eigen can read or write the matrices in place.
bool is_direct(const View& view, DType compute) {
  const MatrixStrides s = matrix_strides(view);
  const int dim = view.dim();
  return view.dtype == compute && ((s.column == 1 && s.row >= view.size(dim - 1)) ||
                                   (s.row == 1 && s.column >= view.size(dim - 2)));
}

// A view that Eigen can use: the given one, or dense memory of the compute dtype. A matrix that a
// batch repeats is copied once.
class Direct {
 public:
  explicit Direct(const View& view)
      : compute_(compute_dtype(view.dtype)),
        direct_(is_direct(view, compute_)),
        once_(view.dim() == 3 && view.strides[0] == 0 ? Dims{1, view.size(1), view.size(2)}
                                                      : view.sizes),
        workspace_(direct_ ? 0 : static_cast<size_t>(element_count(once_)) * size_of(compute_)),
        view_(view) {
    if (!direct_) {
      view_ = view_of(workspace_.as<std::byte>(), compute_, once_, row_major_strides(once_));
    }
  }
  const View& view() const { return view_; }
  bool is_copy() const { return !direct_; }
  void read(const View& from) const {
    if (!direct_) {
      View source = from;
      source.sizes = once_;
      source.numel = element_count(once_);
      cpu::copy({.x = source, .y = view_});
    }
  }
  void repeat(int64_t batch) {  // a copy that is read for every matrix
    if (!direct_ && view_.dim() == 3 && view_.size(0) == 1 && batch > 1) {
      view_.sizes[0] = batch;
      view_.strides[0] = 0;
    }
  }

 private:
  DType compute_;
  bool direct_;
  Dims once_;
  Workspace workspace_;
  View view_;
};

struct Block {
  int64_t row, column, rows, columns;
};

template <class T, class Left, class Right>
void multiply(const Left& a, const Right& b, const Operand<T>& y, const Block& at, bool add) {
  const auto write = [&](auto&& to) {
    if (add) {
      to.noalias() += a * b;
    } else {
      to.noalias() = a * b;
    }
  };
  // Eigen writes columns; a row-major y is its transpose.
  if (y.row_major) {
    write(y.template map<Eigen::RowMajor>(at.row, at.column, at.rows, at.columns));
  } else {
    write(y.template map<Eigen::ColMajor>(at.row, at.column, at.rows, at.columns));
  }
}

template <class T>
void multiply_block(const Operand<T>& a, const Operand<T>& b, const Operand<T>& y, const Block& at,
                    bool add) {
  const auto with_right = [&](const auto& left) {
    if (b.row_major) {
      multiply(left, b.template map<Eigen::RowMajor>(0, at.column, b.rows, at.columns), y, at, add);
    } else {
      multiply(left, b.template map<Eigen::ColMajor>(0, at.column, b.rows, at.columns), y, at, add);
    }
  };
  if (a.row_major) {
    with_right(a.template map<Eigen::RowMajor>(at.row, 0, at.rows, a.columns));
  } else {
    with_right(a.template map<Eigen::ColMajor>(at.row, 0, at.rows, a.columns));
  }
}

template <class T>
T activated(Activation activation, T x) {
  switch (activation) {
    case Activation::relu: return x < 0 ? T(0) : x;  // keeps NaN
    case Activation::gelu: return x / 2 * (1 + std::erf(x * T(0.70710678118654752440)));
    case Activation::gelu_tanh: {
      const T inner = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
      return x / 2 * (1 + std::tanh(inner));
    }
    default: return x;
  }
}

// Bias and activation of a block.
template <class T>
void apply_epilogue(const Operand<T>& y, const Block& at, const Epilogue& e, const T* bias) {
  if (!bias && e.activation == Activation::none) {
    return;
  }
  for (int64_t i = at.row; i < at.row + at.rows; ++i) {
    for (int64_t j = at.column; j < at.column + at.columns; ++j) {
      T& element = y.data[y.row_major ? i * y.stride + j : j * y.stride + i];
      element = activated(e.activation, bias ? element + bias[j] : element);
    }
  }
}

template <class T>
void run(const Gemm& g, const View& a, const View& b, const View& y, const T* bias) {
  const int dim = y.dim();
  const int64_t m = y.size(dim - 2), n = y.size(dim - 1), k = a.size(dim - 1);
  const bool by_rows = m >= n;
  const int64_t side = by_rows ? m : n;
  const int64_t width = std::max(kLeastSide, ceil_div(ceil_div(side, kSlices), 8) * 8);
  const int64_t slices = ceil_div(side, width), batch = dim == 3 ? y.size(0) : 1;
  const double flops = 2.0 * static_cast<double>(by_rows ? n : m) * static_cast<double>(width) *
                       static_cast<double>(k);
  const auto grain = static_cast<int64_t>(std::min(1e6 / (flops + 1) + 1, 1e9));
  parallel_for(batch * slices, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t matrix = i / slices, first = i % slices * width;
      const int64_t length = std::min(width, side - first);
      const Block at = by_rows ? Block{first, 0, length, n} : Block{0, first, m, length};
      const auto to = operand<T>(y, matrix);
      multiply_block(operand<T>(a, matrix), operand<T>(b, matrix), to, at, g.epilogue.accumulate);
      apply_epilogue(to, at, g.epilogue, bias);
    }
  });
}

}  // namespace

bool eigen_gemm(const Gemm& g) {
  if (g.epilogue.factor || g.epilogue.slope) {
    return false;
  }
  Direct a(g.a), b(g.b), y(g.y);
  a.read(g.a);
  b.read(g.b);
  const int64_t batch = g.y.dim() == 3 ? g.y.size(0) : 1;
  a.repeat(batch);
  b.repeat(batch);
  if (g.epilogue.accumulate) {
    y.read(g.y);
  }
  const DType compute = compute_dtype(g.y.dtype);
  const View& shift = g.epilogue.bias;
  const Workspace workspace(shift ? static_cast<size_t>(shift.numel) * size_of(compute) : 0);
  if (shift) {
    cpu::copy({.x = shift,
               .y = view_of(workspace.as<std::byte>(), compute, shift.sizes,
                            row_major_strides(shift.sizes))});
  }
  if (compute == DType::f64) {
    run<double>(g, a.view(), b.view(), y.view(), shift ? workspace.as<double>() : nullptr);
  } else {
    run<float>(g, a.view(), b.view(), y.view(), shift ? workspace.as<float>() : nullptr);
  }
  if (y.is_copy()) {
    cpu::copy({.x = y.view(), .y = g.y});
  }
  return true;
}

}  // namespace binade::kernels

#else

bool binade::kernels::eigen_gemm(const Gemm&) { return false; }

#endif
