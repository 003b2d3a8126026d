#include <binade/kernels/base/convert_internal.h>
#include <binade/kernels/base/number_internal.h>

#include <cstring>

namespace binade::kernels {

uint64_t bits_of(DType dtype, double value) {
  uint64_t bits = 0;
  dispatch("bits_of", dtype, [&]<class T>(Type<T>) {
    const T number = converted<T>(value);
    std::memcpy(&bits, &number, sizeof number);
  });
  return bits;
}

}  // namespace binade::kernels
