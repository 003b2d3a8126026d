// Winograd on the CPU, forward and backward to the data: both sum over the channels of the source
// and give the channels of the target. Every output belongs to one tile, whose sums run over the
// channels in a fixed order, so threads may take any tiles.
//
// Blocks of tiles stay in the second-level cache through all three steps; the transformed weight is
// shared. Where the weight is not much smaller than all tiles together (deep layers with small
// images) the order is reversed: the tiles are transformed once, and panels of output channels go
// through the three steps, so that the transformed weight never exists as a whole.
#include <binade/kernels/base/ceil_div.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/conv/conv2d_taps_internal.h>
#include <binade/kernels/conv/winograd_internal.h>
#include <binade/kernels/gemm/contraction_internal.h>
#include <binade/kernels/gemm/packed_epilogue_internal.h>

#include <algorithm>
#include <optional>

namespace binade::kernels {
namespace {

constexpr int64_t kBlockFloats = 96 * 1024;  // of v and m of a block of tiles
constexpr int64_t kMaxBlock = 96;            // tiles
constexpr int64_t kPanel = kMaxTileWidth;    // output channels whose weight is transformed together
constexpr int64_t kDepth = 128;              // input channels of a panel's transformed weight
constexpr int64_t kPanelRatio = 2;           // tiles per weight; below it panels are run
constexpr int64_t kTransformTiles = 8;       // a thread's least share of a transform
constexpr int64_t kFewBlocks = 16;           // below it one more block costs time
constexpr int64_t kEvenBlocks = 4;           // which 2 and 4 threads share evenly

int64_t element_size(const View& view) { return static_cast<int64_t>(size_of(view.dtype)); }

struct Correlation {
  WinogradImages source, target;  // channels: summed, produced
  WinogradTiles tiles;            // of the target
  int64_t top, left;              // of the source's window before the target's tile
  const View& w;
  int64_t source_stride, target_stride;  // of w, by channels
  bool turned;
  TileEpilogue epilogue;
  WinogradImages residual = {};  // the epilogue's
  WeightPacking* packing = nullptr;
};

class WinogradCorrelator {
 public:
  explicit WinogradCorrelator(const Correlation& c)
      : c_(c), reduced_(c.source.channels), produced_(c.target.channels) {
    TileSet<double> f64;
    tile_sets_best(tiles_, f64);
    kept_ = kept_taps();
  }

  void run() {
    const bool by_panels =
        kPanelRatio * reduced_ * produced_ > c_.tiles.count * (reduced_ + produced_);
    by_panels ? run_panels() : run_blocks();
  }

 private:
  // Panels are as wide as register tiles; the last panel is one vector wide if that is enough.
  int64_t padded(int64_t columns) const { return ceil_div(columns, tiles_.lanes) * tiles_.lanes; }

  void transform_input(int64_t first, int64_t count, const WinogradPlanes& v) const {
    WinogradTiles tiles = c_.tiles;
    tiles.first = first;
    tiles.count = count;
    winograd_input_best(
        WinogradInput{.x = c_.source, .tiles = tiles, .top = c_.top, .left = c_.left, .v = v});
  }

  void pack_tap(int64_t tap, const PanelPacking& where) const {
    const int64_t offset = tap / 3 * c_.w.strides[2] + tap % 3 * c_.w.strides[3];
    PanelPacking packing = where;
    packing.source = static_cast<const std::byte*>(where.source) + offset * element_size(c_.w);
    packing.from = c_.w.dtype;
    packing.row_stride = c_.source_stride;
    packing.column_stride = c_.target_stride;
    pack_panels_best(packing);
  }

  // The packed taps that the caller keeps; null if it keeps none.
  const float* kept_taps() const {
    if (!c_.packing) {
      return nullptr;
    }
    const int64_t rows = kWinogradTaps * reduced_;
    return reinterpret_cast<const float*>(c_.packing->get(
        taps_format(rows * padded(produced_), sizeof(float), false), [&](std::byte* target) {
          parallel_for(kWinogradTaps, 1, [&](int64_t begin, int64_t end) {
            for (int64_t tap = begin; tap < end; ++tap) {
              pack_tap(tap, {.source = c_.w.data,
                             .rows = reduced_,
                             .columns = produced_,
                             .first_row = tap * reduced_,
                             .total_rows = rows,
                             .target = target});
            }
          });
        }));
  }

  // transform_weight() of taps that are kept, panel by panel.
  void transform_kept(int64_t row, int64_t rows, int64_t column, int64_t columns,
                      const WinogradPlanes& u) const {
    for (int64_t j = column; j < column + columns; j += tiles_.width()) {
      const int64_t width = std::min(padded(column + columns - j), tiles_.width());
      winograd_weight_best(
          WinogradWeight{.taps = kept_ + j * kWinogradTaps * reduced_ + row * width,
                         .tap_stride = reduced_ * width,
                         .count = rows * width,
                         .turned = c_.turned,
                         .u = {u.data + (j - column) * rows, u.plane, u.row}});
    }
  }

  // Weights of `rows` input channels and at most kPanel output channels as panels at every
  // frequency. `taps` holds kWinogradTaps * rows * kPanel.
  void transform_weight(int64_t row, int64_t rows, int64_t column, int64_t columns, float* taps,
                        const WinogradPlanes& u) const {
    if (kept_) {
      return transform_kept(row, rows, column, columns, u);
    }
    const int64_t count = rows * padded(columns);
    for (int64_t tap = 0; tap < kWinogradTaps; ++tap) {
      const int64_t first = row * c_.source_stride + column * c_.target_stride;
      pack_tap(tap, {.source = c_.w.data + first * element_size(c_.w),
                     .rows = rows,
                     .columns = columns,
                     .first_row = 0,
                     .total_rows = rows,
                     .target = taps + tap * count});
    }
    winograd_weight_best(WinogradWeight{
        .taps = taps, .tap_stride = count, .count = count, .turned = c_.turned, .u = u});
  }

  struct ProductSize {
    int64_t rows, depth, columns;
  };
  // m[f] (+)= v[f] u[f] for every frequency.
  static void multiply(const ProductSize& size, const WinogradPlanes& v, const WinogradPlanes& u,
                       const WinogradPlanes& m, bool accumulate) {
    static constexpr int64_t kNoOffset = 0;
    for (int64_t f = 0; f < kWinogradFrequencies; ++f) {
      tile_grid_best(TileGrid{.rows = size.rows,
                              .columns = size.columns,
                              .a = v.data + f * v.plane,
                              .sum = {.a_row = v.row, .offsets = &kNoOffset, .length = size.depth},
                              .b = u.data + f * u.plane,
                              .c = m.data + f * m.plane,
                              .c_row = m.row,
                              .epilogue = {.accumulate = accumulate}});
    }
  }

  void run_blocks() {
    const int64_t u_plane = odd_lines(reduced_ * padded(produced_));
    const Workspace weights(kWinogradFrequencies * u_plane * sizeof(float));
    const WinogradPlanes u{weights.as<float>(), u_plane, 0};
    parallel_for(ceil_div(produced_, kPanel), 1, [&](int64_t begin, int64_t end) {
      const Workspace taps(kWinogradTaps * reduced_ * kPanel * sizeof(float));
      for (int64_t column = begin * kPanel; column < std::min(end * kPanel, produced_);
           column += kPanel) {
        transform_weight(0, reduced_, column, std::min(kPanel, produced_ - column),
                         taps.as<float>(), {u.data + column * reduced_, u_plane, 0});
      }
    });
    const int64_t count = c_.tiles.count, blocks = block_count();
    parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
      WinogradPlanes v{.row = odd_lines(reduced_)}, m{.row = odd_lines(produced_)};
      v.plane = odd_lines(ceil_div(count, blocks) * v.row);
      m.plane = odd_lines(ceil_div(count, blocks) * m.row);
      const Workspace block(kWinogradFrequencies * (v.plane + m.plane) * sizeof(float));
      v.data = block.as<float>();
      m.data = v.data + kWinogradFrequencies * v.plane;
      for (int64_t i = begin; i < end; ++i) {
        WinogradTiles tiles = c_.tiles;
        tiles.first = count * i / blocks;
        tiles.count = count * (i + 1) / blocks - tiles.first;
        transform_input(tiles.first, tiles.count, v);
        multiply({tiles.count, reduced_, produced_}, v, u, m, false);
        write_output(tiles, m, 0, produced_);
      }
    });
  }

  // Blocks have equal size: about as many tiles as the cache holds, but enough that reading u,
  // which every block does, costs at most twice the transfers of the block's v and m. If there are
  // many blocks, they hold whole register tiles; if there are few, threads share them evenly.
  int64_t block_count() const {
    const int64_t count = c_.tiles.count, channels = reduced_ + produced_, unit = tiles_.max_rows;
    const int64_t best = std::min(std::max(kBlockFloats / (kWinogradFrequencies * channels),
                                           reduced_ * produced_ / (4 * channels)),
                                  kMaxBlock);
    const int64_t many = ceil_div(count, std::max<int64_t>(1, best / unit) * unit);
    const int64_t even =
        ceil_div(ceil_div(count, std::max<int64_t>(best, 1)), kEvenBlocks) * kEvenBlocks;
    return std::min(many < kFewBlocks ? even : many, count);
  }

  void run_panels() {
    WinogradPlanes v{.row = odd_lines(reduced_)};
    v.plane = odd_lines(c_.tiles.count * v.row);
    const Workspace tiles(kWinogradFrequencies * v.plane * sizeof(float));
    v.data = tiles.as<float>();
    parallel_for(c_.tiles.count, kTransformTiles, [&](int64_t begin, int64_t end) {
      transform_input(begin, end - begin, {v.data + begin * v.row, v.plane, v.row});
    });
    // With more threads than panels, several threads take the same panel, for different tiles.
    const int64_t panels = ceil_div(produced_, kPanel),
                  parts = std::min(ceil_div(threads(), panels), c_.tiles.count);
    parallel_for(panels * parts, 1, [&](int64_t begin, int64_t end) {
      const int64_t depth = std::min(kDepth, reduced_);
      WinogradPlanes u{.plane = odd_lines(depth * kPanel)}, m{.row = odd_lines(kPanel)};
      m.plane = odd_lines(ceil_div(c_.tiles.count, parts) * m.row);
      const int64_t taps_floats = kWinogradTaps * depth * kPanel;
      const Workspace panel((kWinogradFrequencies * (u.plane + m.plane) + taps_floats) *
                            sizeof(float));
      u.data = panel.as<float>();
      m.data = u.data + kWinogradFrequencies * u.plane;
      float* taps = m.data + kWinogradFrequencies * m.plane;
      for (int64_t i = begin; i < end; ++i) {
        WinogradTiles part = c_.tiles;
        part.first = c_.tiles.count * (i % parts) / parts;
        part.count = c_.tiles.count * (i % parts + 1) / parts - part.first;
        run_panel(i / parts * kPanel, part, v, u, m, taps);
      }
    });
  }

  // Computes the output of one panel for some tiles.
  void run_panel(int64_t column, const WinogradTiles& tiles, const WinogradPlanes& v,
                 const WinogradPlanes& u, const WinogradPlanes& m, float* taps) const {
    const int64_t columns = std::min(kPanel, produced_ - column);
    for (int64_t row = 0; row < reduced_; row += kDepth) {
      const int64_t depth = std::min(kDepth, reduced_ - row);
      transform_weight(row, depth, column, columns, taps, u);
      float* source = v.data + tiles.first * v.row + row;
      multiply({tiles.count, depth, columns}, {source, v.plane, v.row}, u, m, row > 0);
    }
    write_output(tiles, m, column, columns);
  }

  void write_output(const WinogradTiles& tiles, const WinogradPlanes& m, int64_t column,
                    int64_t columns) const {
    const auto part = [&](WinogradImages images) {
      images.data += images.data ? column * static_cast<int64_t>(size_of(images.dtype)) : 0;
      images.channels = columns;
      return images;
    };
    winograd_output_best(WinogradOutput{.m = m,
                                        .tiles = tiles,
                                        .epilogue = c_.epilogue.at(0, column, sizeof(float)),
                                        .residual = part(c_.residual),
                                        .y = part(c_.target)});
  }

  const Correlation& c_;
  const int64_t reduced_, produced_;
  TileSet<float> tiles_;
  const float* kept_ = nullptr;
};

}  // namespace

void winograd_forward(const Conv2dForward& a) {
  const PackedEpilogue epilogue(a.epilogue);
  const WinogradTensor x(a.x, Access::read), y(a.y, Access::write);
  std::optional<WinogradTensor> residual;
  if (a.epilogue.residual) {
    residual.emplace(a.epilogue.residual, Access::read);
  }
  const Correlation correlation{.source = x.images(),
                                .target = y.images(),
                                .tiles = winograd_tiles(a.y),
                                .top = a.geometry.padding[0],
                                .left = a.geometry.padding[1],
                                .w = a.w,
                                .source_stride = a.w.strides[1],
                                .target_stride = a.w.strides[0],
                                .turned = false,
                                .epilogue = epilogue.tile(),
                                .residual = residual ? residual->images() : WinogradImages{},
                                .packing = a.packing};
  WinogradCorrelator(correlation).run();
  y.store();
}

// dx is the convolution of dy, padded by 2 - padding, with the kernel rotated by 180 degrees.
void winograd_backward_data(const Conv2dBackwardData& a) {
  const PackedEpilogue epilogue({.bias = a.bias});
  const WinogradTensor dy(a.dy, Access::read), dx(a.dx, Access::write);
  const Correlation correlation{.source = dy.images(),
                                .target = dx.images(),
                                .tiles = winograd_tiles(a.dx),
                                .top = 2 - a.geometry.padding[0],
                                .left = 2 - a.geometry.padding[1],
                                .w = a.w,
                                .source_stride = a.w.strides[0],
                                .target_stride = a.w.strides[1],
                                .turned = true,
                                .epilogue = epilogue.tile()};
  WinogradCorrelator(correlation).run();
  dx.store();
}

}  // namespace binade::kernels
