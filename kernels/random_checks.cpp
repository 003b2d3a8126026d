#include <binade/kernels/random_checks.h>

namespace binade::kernels {
namespace {

void check_floating(const char* kernel, DType dtype) {
  check(is_floating(dtype), kernel, ": got dtype ", dtype,
        ", expected a floating dtype (f64, f32, f16, bf16)");
}

}  // namespace

void check_arguments(const FillUniform& a) { check_floating("fill_uniform", a.y.dtype); }

void check_arguments(const FillNormal& a) { check_floating("fill_normal", a.y.dtype); }

void check_arguments(const Dropout& a) {
  check_floating("dropout", a.y.dtype);
  check(a.x.dtype == a.y.dtype, "dropout: got dtypes ", a.x.dtype, " and ", a.y.dtype,
        ", expected one dtype");
  check(a.x.sizes == a.y.sizes, "dropout: got sizes ", a.x.sizes, " and ", a.y.sizes,
        ", expected equal sizes");
  check(a.p >= 0 && a.p <= 1, "dropout: got p = ", a.p, ", expected 0 <= p <= 1");
}

}  // namespace binade::kernels
