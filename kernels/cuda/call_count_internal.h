// The number of kernel calls that this thread has started. Compare two counts to see whether a
// write of an earlier call came before a read.
#pragma once

namespace binade::kernels {

unsigned started_calls();

}  // namespace binade::kernels
