// The interface by which the race detector passes accesses to the access report.
#pragma once
#include <binade/kernels/host/race.h>

namespace binade::kernels::host::count {

void access(const Executor& x, const race::Access& access, const void* instruction);
void access(const Executor& x, const race::Access& access, Site site);
void end_block(const Executor& x);  // turns the accesses of the block into requests

}  // namespace binade::kernels::host::count
