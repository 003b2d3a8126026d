// Winograd on the CPU, backward to the weight: dU_f = V_f^T Z_f sums over tiles at every frequency,
// dw = G^T dU G. Two ways, chosen by shape:
//
//   partial sums   ranges of tiles, each with a dU of its own and blocks of tiles that stay in a
//                  cache. Their number depends on the shape only and they are added in order.
//   shared tiles   where dU is too large for several copies: tiles are transformed once, a chunk
//                  at a time, and jobs of rows x columns of dw sum over all of them.
#include <binade/kernels/base/ceil_div.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/conv/winograd_internal.h>
#include <binade/kernels/gemm/contraction_internal.h>

#include <algorithm>

namespace binade::kernels {
namespace {

constexpr int64_t kMaxPartials = 8, kMinPartials = 4;
constexpr int64_t kPartialFloats = 3 << 20;   // of all partial sums
constexpr int64_t kBlockFloats = 128 * 1024;  // of v and z of a block of tiles
constexpr int64_t kMinBlock = 32, kMaxBlock = 128;
constexpr int64_t kChunkFloats = 12 << 20;  // of v and z of a chunk of shared tiles
constexpr int64_t kJobRows = 42;            // of dw in a job: whole register tiles of 6 and of 14
constexpr int64_t kPanel = kMaxTileWidth;
constexpr int64_t kTransformTiles = 8;  // a thread's least share of a transform

class WeightGradientSum {
 public:
  explicit WeightGradientSum(const Conv2dBackwardWeight& a)
      : a_(a),
        x_(a.x, Access::read),
        dy_(a.dy, Access::read),
        tiles_(winograd_tiles(a.dy)),
        c_(a.x.size(1)),
        k_(a.dy.size(1)),
        pitch_(odd_lines(k_)),
        v_row_(odd_lines(c_)) {}

  void run() {
    const int64_t du_floats = kWinogradFrequencies * odd_lines(c_ * pitch_);
    const int64_t partials =
        std::min({kMaxPartials, tiles_.count / kMinBlock, kPartialFloats / du_floats});
    partials >= kMinPartials ? run_partials(partials) : run_shared();
  }

 private:
  // Tiles as the two factors of a product: v as they are, z as panels.
  struct Block {
    WinogradPlanes v, z;
    int64_t rows;  // tiles
  };

  static int64_t floats(const Block& block) {
    return kWinogradFrequencies * (block.v.plane + block.z.plane);
  }

  Block make_block(int64_t rows) const {
    Block block{.v = {.row = v_row_}, .z = {}, .rows = rows};
    block.v.plane = odd_lines(rows * v_row_);
    block.z.plane = odd_lines(rows * ceil_div(k_, kPanel) * kPanel);
    return block;
  }

  static void place(Block& block, float* memory) {
    block.v.data = memory;
    block.z.data = memory + kWinogradFrequencies * block.v.plane;
  }

  // Rows [row, row + count) of the block from tiles [first + row, ...).
  void transform(const Block& block, int64_t first, int64_t row, int64_t count) const {
    WinogradTiles tiles = tiles_;
    tiles.first = first + row;
    tiles.count = count;
    winograd_input_best(
        WinogradInput{.x = x_.images(),
                      .tiles = tiles,
                      .top = a_.geometry.padding[0],
                      .left = a_.geometry.padding[1],
                      .v = {block.v.data + row * block.v.row, block.v.plane, block.v.row}});
    winograd_output_gradient_best(WinogradOutputGradient{.dy = dy_.images(),
                                                         .tiles = tiles,
                                                         .first_row = row,
                                                         .total_rows = block.rows,
                                                         .z = block.z});
  }

  struct Part {  // of dw as [c, k]
    int64_t row, rows, column, columns;
  };

  // du[f] (+)= v[f]^T z[f] for a part of dU; du points to the part's first element.
  static void multiply(const Block& block, const Part& part, const WinogradPlanes& du,
                       bool accumulate) {
    static constexpr int64_t kNoOffset = 0;
    for (int64_t f = 0; f < kWinogradFrequencies; ++f) {
      tile_grid_best(TileGrid{
          .rows = part.rows,
          .columns = part.columns,
          .a = block.v.data + f * block.v.plane + part.row,
          .sum = {.a_row = 1, .a_step = block.v.row, .offsets = &kNoOffset, .length = block.rows},
          .b = block.z.data + f * block.z.plane + part.column * block.rows,
          .c = du.data + f * du.plane,
          .c_row = du.row,
          .epilogue = {.accumulate = accumulate}});
    }
  }

  // Tiles per block: v, z and dU then cost about the same number of transfers, or fit a cache.
  int64_t block_rows() const {
    const int64_t by_cache = kBlockFloats / (kWinogradFrequencies * (c_ + k_));
    return std::clamp(std::max(by_cache, c_ * k_ / (c_ + k_)), kMinBlock, kMaxBlock);
  }

  void run_partials(int64_t partials) const {
    const WinogradPlanes du{nullptr, odd_lines(c_ * pitch_), pitch_};
    const int64_t stride = kWinogradFrequencies * du.plane;
    const Workspace sums(partials * stride * sizeof(float));
    parallel_for(partials, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        accumulate(tiles_.count * i / partials, tiles_.count * (i + 1) / partials,
                   {sums.as<float>() + i * stride, du.plane, du.row});
      }
    });
    parallel_for(c_, 8, [&](int64_t begin, int64_t end) {
      const int64_t tap_stride = odd_lines((end - begin) * pitch_);
      const Workspace taps(kWinogradTaps * tap_stride * sizeof(float));
      const WinogradWeightGradient gradient{
          .du = {sums.as<float>() + begin * du.row, du.plane, du.row},
          .partials = partials,
          .partial_stride = stride,
          .rows = end - begin,
          .columns = k_,
          .taps = taps.as<float>(),
          .tap_stride = tap_stride,
          .tap_row = pitch_};
      winograd_weight_gradient_best(gradient);
      store(gradient, {begin, end - begin, 0, k_});
    });
  }

  void accumulate(int64_t begin, int64_t end, const WinogradPlanes& du) const {
    const int64_t rows = std::min(block_rows(), end - begin);
    Block block = make_block(rows);
    const Workspace workspace(floats(block) * sizeof(float));
    for (int64_t first = begin; first < end; first += rows) {
      block = make_block(std::min(rows, end - first));
      place(block, workspace.as<float>());
      transform(block, first, 0, block.rows);
      multiply(block, {0, c_, 0, k_}, du, first > begin);
    }
  }

  void run_shared() const {
    const int64_t most =
        std::max(kMaxBlock, kChunkFloats / (kWinogradFrequencies * (v_row_ + pitch_)));
    const int64_t chunks = ceil_div(tiles_.count, most);
    const int64_t tap_stride = odd_lines(c_ * pitch_);
    // The taps so far; needed if there is more than one chunk.
    const Workspace sums((chunks > 1 ? kWinogradTaps * tap_stride : 0) * sizeof(float));
    const Workspace workspace(floats(make_block(ceil_div(tiles_.count, chunks))) * sizeof(float));
    for (int64_t i = 0; i < chunks; ++i) {
      const int64_t first = tiles_.count * i / chunks;
      Block block = make_block(tiles_.count * (i + 1) / chunks - first);
      place(block, workspace.as<float>());
      parallel_for(block.rows, kTransformTiles, [&](int64_t begin, int64_t end) {
        transform(block, first, begin, end - begin);
      });
      run_jobs(block,
               {.taps = sums.as<float>(),
                .tap_stride = tap_stride,
                .tap_row = pitch_,
                .accumulate = i > 0},
               i + 1 == chunks);
    }
  }

  // Adds a chunk to the taps of all jobs (kept in `sums.taps` between chunks); the last chunk
  // writes dw.
  void run_jobs(const Block& block, const WinogradWeightGradient& sums, bool last) const {
    const int64_t down = ceil_div(c_, kJobRows), across = ceil_div(k_, kPanel);
    parallel_for(down * across, 1, [&](int64_t begin, int64_t end) {
      WinogradPlanes du{.row = odd_lines(kPanel)};
      du.plane = odd_lines(kJobRows * du.row);
      const int64_t tap_stride = kJobRows * du.row;
      const Workspace workspace((kWinogradFrequencies * du.plane + kWinogradTaps * tap_stride) *
                                sizeof(float));
      du.data = workspace.as<float>();
      for (int64_t job = begin; job < end; ++job) {
        const int64_t row = job % down * kJobRows, column = job / down * kPanel;
        const Part part{row, std::min(kJobRows, c_ - row), column, std::min(kPanel, k_ - column)};
        multiply(block, part, du, false);
        WinogradWeightGradient gradient = sums;
        if (sums.taps) {
          gradient.taps += part.row * pitch_ + part.column;
        } else {
          gradient.taps = du.data + kWinogradFrequencies * du.plane;
          gradient.tap_stride = tap_stride;
          gradient.tap_row = du.row;
        }
        gradient.du = du;
        gradient.rows = part.rows;
        gradient.columns = part.columns;
        winograd_weight_gradient_best(gradient);
        if (last) {
          store(gradient, part);
        }
      }
    });
  }

  // Writes the taps of a part to dw.
  void store(const WinogradWeightGradient& taps, const Part& part) const {
    const Dims& strides = a_.dw.strides;
    const auto size = static_cast<int64_t>(size_of(a_.dw.dtype));
    for (int64_t tap = 0; tap < kWinogradTaps; ++tap) {
      copy_strided_best(
          StridedCopy{.source = taps.taps + tap * taps.tap_stride,
                      .from = DType::f32,
                      .to = a_.dw.dtype,
                      .source_strides = {0, taps.tap_row, 1},
                      .target = a_.dw.data + (part.row * strides[1] + part.column * strides[0] +
                                              tap / 3 * strides[2] + tap % 3 * strides[3]) *
                                                 size,
                      .target_strides = {0, strides[1], strides[0]},
                      .sizes = {1, part.rows, part.columns}});
    }
  }

  const Conv2dBackwardWeight& a_;
  const WinogradTensor x_, dy_;
  const WinogradTiles tiles_;
  const int64_t c_, k_, pitch_, v_row_;
};

}  // namespace

void winograd_backward_weight(const Conv2dBackwardWeight& a) { WeightGradientSum(a).run(); }

}  // namespace binade::kernels
