// Argument checks of kernels/exponents/exponents.h, for every device.
#pragma once
#include <binade/kernels/exponents/exponents.h>

namespace binade::kernels {

void check_count_exponents(const CountExponents& a);
void check_count_lost_updates(const CountLostUpdates& a);

}  // namespace binade::kernels
