// The loops of kernels/copy/combine_cpu.cpp. Internal to the CPU backend.
#pragma once
#include <binade/kernels/base/isa.h>
#include <binade/kernels/base/strided.h>
#include <binade/kernels/copy/combine.h>

namespace binade::kernels {

struct CombineTile {
  CombineOp op;
  DType x, received, y;
  double before, after;
};
// y, x, received (null: none); contiguous
BINADE_ISA_KERNEL(combine_tile, const CombineTile& a, const StridedTile& tile)

}  // namespace binade::kernels
