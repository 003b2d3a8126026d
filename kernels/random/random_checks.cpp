#include <binade/kernels/random/random_internal.h>

namespace binade::kernels {
namespace {

void check_floating(const char* kernel, DType dtype) {
  check(is_floating(dtype), kernel, ": got dtype ", dtype,
        ", expected a floating dtype (f64, f32, f16, bf16)");
}

}  // namespace

void check_advance(const char* kernel, const View& advance, const View& y) {
  check(
      !advance || (advance.dtype == DType::i64 && advance.numel == 1 && advance.device == y.device),
      kernel, ": got advance ", advance.dtype, " ", advance.sizes, " on ", advance.device,
      ", expected i64 [1] on ", y.device);
}

void check_arguments(const FillUniform& a) {
  check_floating("fill_uniform", a.y.dtype);
  check_advance("fill_uniform", a.advance, a.y);
}

void check_arguments(const FillNormal& a) {
  check_floating("fill_normal", a.y.dtype);
  check_advance("fill_normal", a.advance, a.y);
}

void check_arguments(const Dropout& a) {
  check_floating("dropout", a.y.dtype);
  check_advance("dropout", a.advance, a.y);
  check(a.x.dtype == a.y.dtype, "dropout: got dtypes ", a.x.dtype, " and ", a.y.dtype,
        ", expected one dtype");
  check(a.x.sizes == a.y.sizes, "dropout: got sizes ", a.x.sizes, " and ", a.y.sizes,
        ", expected equal sizes");
  check(a.p >= 0 && a.p <= 1, "dropout: got p = ", a.p, ", expected 0 <= p <= 1");
}

}  // namespace binade::kernels
