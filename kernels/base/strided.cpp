#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/strided.h>

#include <cassert>

namespace binade::kernels {
namespace {

int64_t magnitude(int64_t stride) { return stride < 0 ? -stride : stride; }

}  // namespace

StridedLoop::StridedLoop(const char* op, std::initializer_list<const View*> operands) {
  const View& y = **operands.begin();
  const int rank = y.dim();
  int order[kMaxDims];  // y's dimensions, smallest stride of y first, ties: later dimension first
  int count = 0;
  for (int d = rank - 1; d >= 0; --d) {
    numel_ *= y.size(d);
    if (y.size(d) == 1) {
      continue;
    }
    int at = count++;
    for (; at > 0 && magnitude(y.strides[d]) < magnitude(y.strides[order[at - 1]]); --at) {
      order[at] = order[at - 1];
    }
    order[at] = d;
  }
  for (int i = 0; i < count; ++i) {
    size_[i] = y.size(order[i]);
  }
  for (const View* view : operands) {
    const int k = operands_++;
    data_[k] = view->data;
    const bool absent = !view->data && view->numel == 0 && numel_ != 0;
    const int missing = rank - view->dim();
    check(missing >= 0, op, ": got an operand of sizes ", view->sizes,
          ", expected one that broadcasts to ", y.sizes);
    const auto width = static_cast<int64_t>(size_of(view->dtype));
    for (int d = 0; d < rank && !absent; ++d) {
      const int64_t size = d < missing ? 1 : view->size(d - missing);
      check(size == y.size(d) || size == 1, op, ": got an operand of sizes ", view->sizes,
            ", expected one that broadcasts to ", y.sizes);
    }
    for (int i = 0; i < count; ++i) {
      const int d = order[i] - missing;
      stride_[k][i] = absent || d < 0 || view->size(d) == 1 ? 0 : view->strides[d] * width;
    }
  }
  for (int i = 0; i < count; ++i) {
    bool merge = dims_ > 0;
    for (int k = 0; k < operands_ && merge; ++k) {
      merge = stride_[k][i] == stride_[k][dims_ - 1] * size_[dims_ - 1];
    }
    if (merge) {
      size_[dims_ - 1] *= size_[i];
      continue;
    }
    size_[dims_] = size_[i];
    for (int k = 0; k < operands_; ++k) {
      stride_[k][dims_] = stride_[k][i];
    }
    ++dims_;
  }
  if (dims_ == 0) {  // a single element
    dims_ = 1;
    size_[0] = 1;
    for (int k = 0; k < operands_; ++k) {
      stride_[k][0] = static_cast<int64_t>(size_of(operands.begin()[k]->dtype));
    }
  }
}

void StridedLoop::run(TileBody body) const {
  assert(operands_ <= kTileOperands);
  if (numel_ == 0) {
    return;
  }
  const int64_t row_blocks = (size_[0] + kBlock - 1) / kBlock;
  const int64_t units = numel_ / size_[0] * row_blocks;
  const int64_t unit_size = size_[0] < kBlock ? size_[0] : kBlock;
  const int64_t grain = (kSerialElements + unit_size - 1) / unit_size;
  parallel_for(units, grain,
               [&](int64_t begin, int64_t end) { run_range(begin, end, row_blocks, body); });
}

void StridedLoop::move_to(int64_t row, StridedTile& tile) const {
  for (int k = 0; k < operands_; ++k) {
    tile.data[k] = data_[k];
  }
  for (int d = 1; d < dims_; ++d) {
    const int64_t index = row % size_[d];
    row /= size_[d];
    for (int k = 0; k < operands_; ++k) {
      tile.data[k] += index * stride_[k][d];
    }
  }
}

void StridedLoop::run_range(int64_t begin, int64_t end, int64_t row_blocks,
                            const TileBody& body) const {
  StridedTile tile;
  for (int k = 0; k < operands_; ++k) {
    tile.inner[k] = stride_[k][0];
    tile.outer[k] = dims_ > 1 ? stride_[k][1] : 0;
  }
  while (begin < end) {
    const int64_t row = begin / row_blocks;
    move_to(row, tile);
    const int64_t block = begin - row * row_blocks;
    if (row_blocks > 1) {  // consecutive blocks of one long row
      const int64_t last =
          end - row * row_blocks < row_blocks ? end - row * row_blocks : row_blocks;
      const int64_t first_element = block * kBlock;
      const int64_t end_element = last == row_blocks ? size_[0] : last * kBlock;
      for (int k = 0; k < operands_; ++k) {
        tile.data[k] += first_element * stride_[k][0];
      }
      tile.rows = 1;
      tile.n = end_element - first_element;
      begin += last - block;
    } else {  // consecutive rows of the second dimension
      const int64_t left = dims_ > 1 ? size_[1] - row % size_[1] : 1;
      tile.rows = left < end - begin ? left : end - begin;
      tile.n = size_[0];
      begin += tile.rows;
    }
    body(tile);
  }
}

void run_flat_parts(const StridedTile& tile, TileBody body) {
  const int64_t numel = tile.n;
  const bool in_place =
      tile.data[0] == tile.data[1] || tile.data[0] == tile.data[2] || tile.data[0] == tile.data[3];
  constexpr int64_t kBlock = StridedLoop::kBlock;
  parallel_for((numel + kBlock - 1) / kBlock, kSerialElements / kBlock,
               [&](int64_t begin, int64_t end) {
                 StridedTile part = tile;
                 part.nontemporal = !in_place && numel * tile.inner[0] >= kNontemporalBytes;
                 for (int k = 0; k < kTileOperands; ++k) {
                   part.data[k] += begin * kBlock * tile.inner[k];
                 }
                 part.n = (end * kBlock < numel ? end * kBlock : numel) - begin * kBlock;
                 body(part);
               });
}

}  // namespace binade::kernels
