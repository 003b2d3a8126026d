#include <binade/kernels/base/error.h>
#include <binade/kernels/base/forced_isa_internal.h>

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string_view>

namespace binade::kernels {
namespace {

// The parts of x86-64-v3 that not every compiler's __builtin_cpu_supports knows by name.
bool has_v3_extras() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const unsigned wanted = bit_F16C | bit_MOVBE;
  const bool basic = __get_cpuid(1, &a, &b, &c, &d) && (c & wanted) == wanted;
  return basic && __get_cpuid(0x80000001, &a, &b, &c, &d) && (c & bit_LZCNT);
}

// A mask of the registers that the operating system saves. REQUIRES: OSXSAVE.
__attribute__((target("xsave"))) uint64_t read_xcr0() { return __builtin_ia32_xgetbv(0); }

// Asks the processor, since some compilers' __builtin_cpu_supports do not know this name either.
bool has_avx512_bf16() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & bit_AVX512BF16);
}

// AMX with bf16 products, on a system that saves its registers.
bool has_amx_bf16() {
  constexpr unsigned kTile = 1u << 24, kBf16 = 1u << 22, kOsSaves = 3u << 17;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) ||
      !__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & (kTile | kBf16)) != (kTile | kBf16)) {
    return false;
  }
  return (read_xcr0() & kOsSaves) == kOsSaves;
}

// Asks Linux for the AMX registers, for all threads of this process. Only called where they are
// used: from then on signal stacks must be larger.
bool amx_is_permitted() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// The widest set whose instructions (x86-64-v3, x86-64-v4, ...) this machine has.
Isa widest() {
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                  has_v3_extras();
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  if (v4) {
    return !has_avx512_bf16() ? Isa::avx512 : has_amx_bf16() ? Isa::amx_bf16 : Isa::avx512_bf16;
  }
  return v3 ? Isa::avx2 : Isa::baseline;
}

// The widest set up to `limit` that this build has (kernels/base/isa.h).
Isa compiled([[maybe_unused]] Isa limit) {
#if defined(BINADE_BASELINE_ONLY)
  return Isa::baseline;
#elif defined(BINADE_WITHOUT_AVX2)
  return limit == Isa::avx2 ? Isa::baseline : limit;
#elif defined(BINADE_WITHOUT_AVX512)
  return std::min(limit, Isa::avx2);
#else
  return limit;
#endif
}

Isa choose() {
  const char* forced = std::getenv("BINADE_FORCE_ISA");
  const Isa limit = compiled(widest()), wanted = narrowed(limit, forced);
  if (compiled(wanted) != wanted) {
    fail("BINADE_FORCE_ISA: got '", forced, "', but this build has no kernels for it, only for ",
         to_string(compiled(wanted)), " and ", to_string(limit),
         "; configure with -DBINADE_ISAS=all");
  }
  return wanted == Isa::amx_bf16 && !amx_is_permitted() ? Isa::avx512_bf16 : wanted;
}

// 0 until the first call, then 1 more than the set. A relaxed load costs less than a static object.
constinit std::atomic<uint8_t> chosen{0};

[[gnu::noinline]] Isa choose_and_keep() {
  const Isa isa = choose();
  chosen.store(static_cast<uint8_t>(static_cast<int>(isa) + 1), std::memory_order_relaxed);
  return isa;
}

}  // namespace

Isa isa() {
  const uint8_t kept = chosen.load(std::memory_order_relaxed);
  return kept ? static_cast<Isa>(kept - 1) : choose_and_keep();
}

Isa narrowed(Isa widest, const char* forced) {
  if (!forced || !*forced) {
    return widest;
  }
  for (const Isa asked : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx_bf16}) {
    if (std::string_view(forced) == to_string(asked)) {
      return std::min(asked, widest);
    }
  }
  fail("BINADE_FORCE_ISA: got '", forced,
       "', expected baseline, avx2, avx512, avx512_bf16 or amx_bf16");
}

const char* to_string(Isa isa) {
  constexpr const char* kName[] = {"baseline", "avx2", "avx512", "avx512_bf16", "amx_bf16"};
  return kName[static_cast<int>(isa)];
}

}  // namespace binade::kernels
