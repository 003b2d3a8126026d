#include <binade/kernels/random/draw_internal.h>
#include <binade/kernels/random/random_internal.h>

namespace binade::kernels {
namespace {

void check_offset(const char* kernel, uint64_t offset) {
  check(offset % kRandomGroup == 0, kernel, ": got offset ", offset, ", expected a multiple of ",
        kRandomGroup);
}

}  // namespace

void check_arguments(const RandomIntegers& a) {
  check(a.y.dtype == DType::i64 && a.y.contiguous, "random_integers: got y ", a.y.dtype, " ",
        a.y.sizes, ", expected i64, row-major");
  check_offset("random_integers", a.offset);
  check_advance("random_integers", a.advance, a.y);
}

void check_arguments(const Bernoulli& a) {
  check(is_floating(a.y.dtype) && a.p.dtype == a.y.dtype && a.p.sizes == a.y.sizes &&
            a.p.contiguous && a.y.contiguous,
        "bernoulli: got p ", a.p.dtype, " ", a.p.sizes, " and y ", a.y.dtype, " ", a.y.sizes,
        ", expected equal sizes and one floating dtype, row-major");
  check_offset("bernoulli", a.offset);
  check_advance("bernoulli", a.advance, a.y);
}

void check_arguments(const ChooseWeighted& a) {
  const bool matrices = a.weights.dim() == 2 && a.at.dim() == 2 && a.weights.size(1) > 0 &&
                        a.weights.size(0) == a.at.size(0);
  const bool doubles = a.weights.dtype == DType::f64 && a.sums.dtype == DType::f64 &&
                       a.at.dtype == DType::f64 && a.y.dtype == DType::i64;
  check(matrices && doubles && a.sums.sizes == a.weights.sizes && a.y.sizes == a.at.sizes &&
            a.weights.contiguous && a.sums.contiguous && a.at.contiguous && a.y.contiguous,
        "choose_weighted: got weights ", a.weights.dtype, " ", a.weights.sizes, ", sums ",
        a.sums.sizes, ", at ", a.at.dtype, " ", a.at.sizes, " and y ", a.y.dtype, " ", a.y.sizes,
        ", expected f64 [rows, classes] twice, f64 and i64 [rows, n], row-major");
}

}  // namespace binade::kernels
