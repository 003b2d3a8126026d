#include <binade/kernels/gemm/gemm_internal.h>

namespace binade::kernels {
namespace {

void check_epilogue(const Gemm& g) {
  const auto& [bias, activation, accumulate, scale, residual, factor, slope] = g.epilogue;
  check(!bias ||
            (bias.dtype == g.y.dtype && bias.dim() == 1 && bias.size(0) == g.y.size(g.y.dim() - 1)),
        "gemm: got bias ", bias.dtype, " ", bias.sizes, ", expected ", g.y.dtype, " [",
        g.y.size(g.y.dim() - 1), "] (the columns of y)");
  check(!scale && !residual,
        "gemm: got an epilogue with scale or residual, which conv2d has, expected bias, "
        "accumulate, activation, factor or slope");
  check(activation != Activation::gelu || g.y.device.is_cpu(), "gemm: got activation gelu on ",
        g.y.device, ", expected none, relu or gelu_tanh; apply gelu as an op");
  if (!factor && !slope) {
    return;
  }
  const auto fits = [&y = g.y](const View& v) {
    return !v || (v.dtype == DType::f32 && v.sizes == y.sizes && matrix_strides(v).column == 1);
  };
  check(g.y.device.is_cpu() && g.y.dim() == 2 && fits(g.y) && fits(factor) && fits(slope),
        "gemm: got y ", g.y.dtype, " ", g.y.sizes, ", factor ", factor.dtype, " ", factor.sizes,
        " and slope ", slope.dtype, " ", slope.sizes,
        ", expected f32 [m, n] on the CPU, with adjacent columns");
  check(slope ? !factor && activation > Activation::relu : activation <= Activation::relu,
        "gemm: got factor or slope beside another activation, expected a slope with gelu or "
        "gelu_tanh, or a factor with none or relu");
}

}  // namespace

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
  check_epilogue(g);
}

MatrixStrides matrix_strides(const View& view) {
  const int dim = view.dim();
  const auto stride = [&](int i) { return i < 0 || view.sizes[i] == 1 ? 1 : view.strides[i]; };
  return {stride(dim - 3), stride(dim - 2), stride(dim - 1)};
}

}  // namespace binade::kernels
