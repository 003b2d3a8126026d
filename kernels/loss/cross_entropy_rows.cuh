// Shared by the kernels of cross entropy with classes and with probabilities: how rows are given to
// threads, and the shared memory in which the threads of a row combine their sums.
#pragma once
#include <binade/kernels/copy/dense_internal.h>
#include <binade/kernels/cuda/row_team.cuh>

#include <algorithm>
#include <numeric>

namespace binade::kernels::cross_entropy {

inline constexpr int kMostLanes = 1024, kRowThreads = 512;
inline constexpr int64_t kMostBlocks = int64_t{1} << 24;  // of a grid: more rows than that loop

template <class C>
struct Smem {
  union {
    dev::TeamMemory<C> one;
    dev::BlockReduceMemory<dev::MaxSum<C>, kRowThreads> denominator;
  };
  union {  // of two weighted sums over the classes
    dev::TeamMemory<dev::SumPair<C>> team_pair;
    dev::BlockReduceMemory<dev::SumPair<C>, kRowThreads> block_pair;
  };
};

// A matrix whose rows hold adjacent elements is used as it is, with any stride between rows; other
// matrices are packed. `Packed` is DenseInput or DenseOutput.
template <class Packed>
class Rows {
 public:
  explicit Rows(const View& view)
      : given_(view), direct_(has_adjacent_columns(view)), packed_(direct_ ? kNoView : view) {}
  const View& view() const { return direct_ ? given_ : packed_.view(); }
  void store() const { packed_.store(); }

 private:
  static bool has_adjacent_columns(const View& x) {
    return !x || x.size(1) == 1 || x.strides[1] == 1;
  }
  const View& given_;
  bool direct_;
  Packed packed_;
};

// The kernels of the two decompositions, with their names.
template <class Problem>
struct Kernels {
  const char* team_name;
  void (*team_per_row)(Problem, RowPlan);
  const char* block_name;
  void (*block_per_row)(Problem);
};

// p holds the numbers of rows and classes; `stride` divides the strides of all rows. arrays: the
// matrices that are read and written in vectors, or null.
template <class T, class Problem, class... P>
void launch_rows(const Kernels<Problem>& kernels, const Problem& p, int64_t stride,
                 const P*... arrays) {
  constexpr size_t kMemory = sizeof(Smem<Compute<T>>);
  if (fits_team<T>(p.classes, kMostLanes)) {
    const RowPlan plan = row_plan<T>(p.rows, p.classes, stride, kMostBlocks, arrays...);
    launch({kernels.team_name, plan.blocks, plan.threads, kMemory}, kernels.team_per_row, p, plan);
  } else {
    const auto blocks = static_cast<unsigned>(std::min(p.rows, kMostBlocks));
    launch({kernels.block_name, blocks, kRowThreads, kMemory}, kernels.block_per_row, p);
  }
}

}  // namespace binade::kernels::cross_entropy
