// What BINADE_FORCE_ISA means. Internal to kernels/.
#pragma once
#include <binade/kernels/base/isa.h>

namespace binade::kernels {

// The set that `forced` asks for where it is narrower than `widest`; null or empty asks for none.
// Throws Error for unknown names.
Isa narrowed(Isa widest, const char* forced);

}  // namespace binade::kernels
