#include <binade/kernels/image/image_normalize_internal.h>

namespace binade::kernels {

void check_arguments(const ImageNormalize& a) {
  check(a.x.dtype == DType::u8 && a.x.dim() == 4 && a.x.contiguous, "image_normalize: got ",
        a.x.dtype, " of sizes ", a.x.sizes, a.x.contiguous ? "" : ", not row-major",
        ", expected row-major u8 [N, H, W, C]");
  check(is_floating(a.y.dtype), "image_normalize: got a result of dtype ", a.y.dtype,
        ", expected a floating dtype (f64, f32, f16, bf16)");
  const Dims expected = {a.x.size(0), a.x.size(3), a.x.size(1), a.x.size(2)};
  check(a.y.sizes == expected, "image_normalize: got a result of sizes ", a.y.sizes, ", expected ",
        expected);
  check(a.x.size(3) >= 1 && a.x.size(3) <= kMaxImageChannels, "image_normalize: got ", a.x.size(3),
        " channels, expected 1 to ", kMaxImageChannels);
  const Dims flags = {a.x.size(0)};
  check(a.flip.data == nullptr || (a.flip.dtype == DType::u8 && a.flip.sizes == flags &&
                                   a.flip.contiguous && a.flip.device == a.y.device),
        "image_normalize: got flags that are not row-major u8 of sizes ", flags,
        " on the device of the result");
  check(a.mix.inside >= 0 && a.mix.inside <= 1 && a.mix.outside >= 0 && a.mix.outside <= 1,
        "image_normalize: got weights ", a.mix.inside, " and ", a.mix.outside, ", expected 0 to 1");
}

bool keeps_order(const ImageNormalize& a) {
  const Dims packed = channels_last_strides(a.y.sizes);
  for (int d = 0; d < 4; ++d) {
    if (a.y.size(d) != 1 && a.y.strides[d] != packed[d]) {
      return false;
    }
  }
  return true;
}

}  // namespace binade::kernels
