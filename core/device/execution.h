// Settings of ops on the CPU: the number of threads and the choice of algorithms (MathMode). Both
// hold for the whole process; results do not depend on the number of threads.
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
