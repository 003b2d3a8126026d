// Argument checks of recurrent cells, the same on every device.
#pragma once
#include <binade/kernels/rnn/rnn_cell.h>

namespace binade::kernels {

void check_arguments(const RnnCellForward& a);
void check_arguments(const RnnCellBackward& a);

}  // namespace binade::kernels
