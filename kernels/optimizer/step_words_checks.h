// Argument checks of kernels/optimizer/step_words.h, for every device.
#pragma once
#include <binade/kernels/optimizer/step_words.h>

namespace binade::kernels {

void check_loss_seed(const LossSeed& a);
void check_unscale_gradient(const UnscaleGradient& a);
void check_step_stats(const StepStats& a);
void check_step_replaces(const StepReplaces& a);
void check_step_decide(const StepDecide& a);
void check_step_prepare(const StepPrepare& a);
void check_schedule_step(const ScheduleStep& a);

}  // namespace binade::kernels
