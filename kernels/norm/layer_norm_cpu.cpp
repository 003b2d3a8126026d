// Layer norm on the CPU: rows are independent and split over threads. Gradients of weight and bias
// are summed per chunk of kChunkRows rows in the compute type, and chunks in order in double.
#include <binade/kernels/base/element.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/strided.h>
#include <binade/kernels/copy/packed_rows_internal.h>
#include <binade/kernels/norm/layer_norm.h>
#include <binade/kernels/norm/layer_norm_isa_internal.h>

#include <algorithm>

namespace binade::kernels {
namespace {

constexpr int64_t kElementsPerTask = 8192, kChunkRows = 64;

int64_t row_grain(int64_t cols) { return std::max<int64_t>(1, kElementsPerTask / cols); }

bool is_large(const View& view) {
  return view.numel * static_cast<int64_t>(size_of(view.dtype)) >= kNontemporalBytes;
}

// A vector [cols] of sums per chunk.
class ChunkSums {
 public:
  ChunkSums(const View& target, int64_t chunks)
      : target_(target),
        chunks_(chunks),
        workspace_(target ? static_cast<size_t>(chunks * target.numel) * size_of(target.dtype)
                          : 0) {}
  void* chunk(int64_t i) const {
    return target_ ? workspace_.as<std::byte>() + i * bytes() : nullptr;
  }
  // Adds the chunks in order, column by column.
  void add_up() const {
    if (!target_) {
      return;
    }
    dispatch_floating("layer_norm", target_.dtype, [&]<class C>(Type<C>) {
      for (int64_t col = 0; col < target_.numel; ++col) {
        double sum = 0;
        for (int64_t i = 0; i < chunks_; ++i) {
          sum += static_cast<double>(static_cast<const C*>(chunk(i))[col]);
        }
        target_.as<C>()[col] = static_cast<C>(sum);
      }
    });
  }

 private:
  int64_t bytes() const { return target_.numel * static_cast<int64_t>(size_of(target_.dtype)); }

  const View& target_;
  int64_t chunks_;
  Workspace workspace_;
};

}  // namespace

void cpu::layer_norm_forward(const LayerNormForward& a) {
  check_arguments(a);
  if (a.x.numel == 0) {
    return;
  }
  const PackedRows x(a.x, 1, Access::read), y(a.y, 1, Access::write);
  const int64_t cols = a.x.size(1);
  parallel_for(a.x.size(0), row_grain(cols), [&](int64_t begin, int64_t end) {
    layer_norm_rows_best(LayerNormRows{.dtype = a.x.dtype,
                                       .x = x.row(begin),
                                       .y = y.row(begin),
                                       .x_stride = x.stride(),
                                       .y_stride = y.stride(),
                                       .rows = end - begin,
                                       .cols = cols,
                                       .weight = a.weight.data,
                                       .bias = a.bias.data,
                                       .mean = element(a.mean, begin),
                                       .rstd = element(a.rstd, begin),
                                       .eps = a.eps,
                                       .nontemporal = is_large(a.y) && a.y.data != a.x.data});
  });
  y.unpack();
}

void cpu::layer_norm_backward(const LayerNormBackward& a) {
  check_arguments(a);
  const int64_t rows = a.x.size(0), cols = a.x.size(1);
  const int64_t chunks = (rows + kChunkRows - 1) / kChunkRows;
  const ChunkSums dweight(a.dweight, chunks), dbias(a.dbias, chunks);
  if (rows == 0) {
    dweight.add_up();
    return dbias.add_up();
  }
  const PackedRows x(a.x, 1, Access::read), dy(a.dy, 1, Access::read), dx(a.dx, 1, Access::write);
  const bool nontemporal = is_large(a.dx) && a.dx.data != a.x.data && a.dx.data != a.dy.data;
  parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i * kChunkRows;
      layer_norm_rows_backward_best(LayerNormRowsBackward{.dtype = a.x.dtype,
                                                          .x = x.row(row),
                                                          .dy = dy.row(row),
                                                          .dx = a.dx ? dx.row(row) : nullptr,
                                                          .x_stride = x.stride(),
                                                          .dy_stride = dy.stride(),
                                                          .dx_stride = dx.stride(),
                                                          .rows = std::min(kChunkRows, rows - row),
                                                          .cols = cols,
                                                          .weight = a.weight.data,
                                                          .mean = element(a.mean, row),
                                                          .rstd = element(a.rstd, row),
                                                          .dweight = dweight.chunk(i),
                                                          .dbias = dbias.chunk(i),
                                                          .nontemporal = nontemporal});
    }
  });
  dweight.add_up();
  dbias.add_up();
  dx.unpack();
}

}  // namespace binade::kernels
