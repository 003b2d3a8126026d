#include <binade/kernels/index/masked_select.h>

namespace binade::kernels {
namespace {

void check_mask(const View& mask, const View& offsets) {
  check(mask.dtype == DType::boolean, "masked_select: got a mask of dtype ", mask.dtype,
        ", expected bool");
  check(offsets.dtype == DType::i64 && offsets.contiguous &&
            offsets.sizes == Dims{mask_offsets(mask.numel)},
        "masked_select: got offsets ", offsets.dtype, " ", offsets.sizes,
        ", expected contiguous i64 [", mask_offsets(mask.numel), "]");
}

// `whole` must have the sizes of the mask; `chosen` holds the selected elements.
void check_sides(const View& whole, const View& mask, const View& chosen) {
  check(whole.sizes == mask.sizes && whole.dtype == chosen.dtype && chosen.dim() == 1,
        "masked_select: got ", whole.dtype, " ", whole.sizes, ", a mask ", mask.sizes, " and ",
        chosen.dtype, " ", chosen.sizes,
        ", expected a mask of equal sizes and one dimension of the same dtype");
}

}  // namespace

void check_arguments(const MaskCount& a) { check_mask(a.mask, a.offsets); }

void check_arguments(const MaskedSelect& a) {
  check_mask(a.mask, a.offsets);
  check_sides(a.x, a.mask, a.y);
  check(a.y.contiguous, "masked_select: got a result that is not contiguous");
}

void check_arguments(const MaskPositions& a) {
  check_mask(a.mask, a.offsets);
  check(a.y.dtype == DType::i64 && a.y.contiguous && a.y.dim() == 2 && a.y.size(1) == a.mask.dim(),
        "nonzero: got a result ", a.y.dtype, " ", a.y.sizes, ", expected contiguous i64 [n, ",
        a.mask.dim(), "]");
}

void check_arguments(const MaskedSpread& a) {
  check_mask(a.mask, a.offsets);
  check_sides(a.y, a.mask, a.x);
}

}  // namespace binade::kernels
