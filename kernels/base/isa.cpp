#include <binade/kernels/base/isa.h>

#include <cstdlib>
#include <cstring>

namespace binade::kernels {
namespace {

Isa widest() {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("f16c");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx2 && avx512 ? Isa::avx512 : avx2 ? Isa::avx2 : Isa::baseline;
}

Isa choose() {
  const Isa best = widest();
  const char* forced = std::getenv("BINADE_FORCE_ISA");
  if (forced && std::strcmp(forced, "baseline") == 0) {
    return Isa::baseline;
  }
  if (forced && std::strcmp(forced, "avx2") == 0 && best >= Isa::avx2) {
    return Isa::avx2;
  }
  return best;
}

}  // namespace

Isa isa() {
  static const Isa chosen = choose();
  return chosen;
}

const char* to_string(Isa isa) {
  constexpr const char* kName[] = {"baseline", "avx2", "avx512"};
  return kName[static_cast<int>(isa)];
}

}  // namespace binade::kernels
