// Parses BINADE_FORCE_ISA. Internal to kernels/.
#pragma once
#include <binade/kernels/base/isa.h>

namespace binade::kernels {

// The set named by `forced` if it is narrower than `widest`, else `widest`. Null or empty:
// `widest`. Throws Error for unknown names.
Isa narrowed(Isa widest, const char* forced);

}  // namespace binade::kernels
