// Checks that a case computes the right result: it compares one call with our own CPU kernel in f64
// on the same values. Kernels that draw random numbers are compared in their own dtype.
#pragma once
#include <bench/kernel_timer.h>

#include <string>

namespace binade::bench {

struct CaseCheck {
  bool ok = true;
  std::string against = {};  // "f64 on the CPU"
  std::string wrong = {};    // the first wrong element; empty if ok
};

// Runs the prepared case once, from the values that its arrays have now.
CaseCheck check_case(const Prepared& work, const CaseSettings& settings);

}  // namespace binade::bench
