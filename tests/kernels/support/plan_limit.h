// A limit of the plans that libraries keep, for one test.
#pragma once
#include <binade/kernels/base/provider.h>

namespace binade::kernels {

class PlanLimit {
 public:
  explicit PlanLimit(int64_t most) : before_(plan_limit()) { set_plan_limit(most); }
  ~PlanLimit() { set_plan_limit(before_); }
  PlanLimit(const PlanLimit&) = delete;
  PlanLimit& operator=(const PlanLimit&) = delete;

 private:
  int64_t before_;
};

}  // namespace binade::kernels
