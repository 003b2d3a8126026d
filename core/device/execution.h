// How ops run on the CPU: on how many threads, and by which algorithms (MathMode). Both hold for
// the process; results do not depend on the threads.
#pragma once
#include <binade/kernels/base/math_mode.h>
#include <binade/kernels/base/parallel.h>

namespace binade {

using kernels::math_mode;
using kernels::MathMode;
using kernels::MathModeGuard;
using kernels::set_math_mode;
using kernels::set_threads;
using kernels::threads;

}  // namespace binade
