// How many kernel calls this thread has started: what was written by an earlier one can be told
// from what was read since.
#pragma once

namespace binade::kernels {

unsigned started_calls();

}  // namespace binade::kernels
