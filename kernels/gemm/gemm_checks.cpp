#include <binade/kernels/gemm/gemm_internal.h>

namespace binade::kernels {

void check_arguments(const Gemm& g) {
  check(is_floating(g.y.dtype), "gemm: got dtype ", g.y.dtype, ", expected f64, f32, f16 or bf16");
  check(g.a.dtype == g.y.dtype && g.b.dtype == g.y.dtype, "gemm: got dtypes a ", g.a.dtype, ", b ",
        g.b.dtype, " and y ", g.y.dtype, ", expected one dtype for all; cast first");
  const int dim = g.y.dim();
  check((dim == 2 || dim == 3) && g.a.dim() == dim && g.b.dim() == dim, "gemm: got shapes a ",
        g.a.sizes, ", b ", g.b.sizes, " and y ", g.y.sizes,
        ", expected three matrices or three batches of matrices");
  const int r = dim - 2, c = dim - 1;
  check(g.a.size(c) == g.b.size(r) && g.a.size(r) == g.y.size(r) && g.b.size(c) == g.y.size(c) &&
            (dim == 2 || (g.a.size(0) == g.y.size(0) && g.b.size(0) == g.y.size(0))),
        "gemm: got shapes a ", g.a.sizes, ", b ", g.b.sizes, " and y ", g.y.sizes,
        ", expected [m, k] times [k, n] into [m, n], with equal batch sizes");
  if (g.bias.data) {
    check(g.bias.dtype == g.y.dtype && g.bias.dim() == 1 && g.bias.size(0) == g.y.size(c),
          "gemm: got bias ", g.bias.dtype, " ", g.bias.sizes, ", expected ", g.y.dtype, " [",
          g.y.size(c), "] (the columns of y)");
  }
}

MatrixStrides matrix_strides(const View& view) {
  const int dim = view.dim();
  const auto stride = [&](int i) { return i < 0 || view.sizes[i] == 1 ? 1 : view.strides[i]; };
  return {stride(dim - 3), stride(dim - 2), stride(dim - 1)};
}

}  // namespace binade::kernels
