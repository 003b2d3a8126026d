// Winograd's convolution F(4x4, 3x3): a tile of 4 x 4 outputs costs 36 multiplications per pair of
// channels instead of 144 (Lavin and Gray 2016). Three steps read and write channels-last images as
// they are: tiles of 6 x 6 inputs become 36 numbers for a channel, for every one of these
// frequencies a small matrix product runs over the channels, and 36 sums become 4 x 4 outputs. The
// gradient of the input is the same with the kernel rotated by 180 degrees; the gradient of the
// weight sums over tiles.
//
// In one dimension, with the points 0, +-a, +-b and infinity:  y = A^T ((G g) * (B^T d)), where
//   (G g)_p   = g(p) / prod_{q != p} (p - q),     g(x) = g0 + g1 x + g2 x^2
//   (A^T m)_i = sum_p p^i m_p                     and B^T d the rest of the Lagrange polynomials.
// a = 5/8 and b = 3/2 keep every power of the points exact; errors are 2 to 4 times smaller than
// with 1 and 2.
//
// Images of f16 and bf16 become f32 in the first step and are rounded once, in the last.
//
// Internal to kernels/. All memory except the images is f32; strides count elements.
#pragma once
#include <binade/kernels/base/isa.h>
#include <binade/kernels/conv/conv2d_internal.h>
#include <binade/kernels/copy/packed_rows_internal.h>
#include <binade/kernels/gemm/tile_epilogue_internal.h>

#include <cstdint>

namespace binade::kernels {

inline constexpr int kWinogradTile = 4, kWinogradFrequencies = 36, kWinogradTaps = 9;

// Channels-last images [.., rows, columns, channels] of f32, f16 or bf16.
struct WinogradImages {
  std::byte* data = nullptr;
  DType dtype = DType::f32;
  int64_t image_stride = 0, row_stride = 0, column_stride = 0;
  int64_t rows = 0, columns = 0, channels = 0;
  std::byte* zeros = nullptr;  // [channels], read where a window leaves the image
};

// Tiles [first, first + count), numbered over images, then rows and columns of tiles.
struct WinogradTiles {
  int64_t high = 0, wide = 0;  // of one image
  int64_t first = 0, count = 0;
};

// Values at the 36 frequencies: value f of element i of row r is at data[f * plane + r * row + i].
struct WinogradPlanes {
  float* data = nullptr;
  int64_t plane = 0, row = 0;
};

// v[f][tile][c] = B^T d B of the 6 x 6 window whose corner is `top` rows above and `left` columns
// before the tile's corner; pixels outside the image are zero.
struct WinogradInput {
  WinogradImages x = {};
  WinogradTiles tiles = {};
  int64_t top = 0, left = 0;
  WinogradPlanes v = {};  // rows are tiles, the first one row 0
};

// y = epilogue(A^T m A) of every tile, clipped to the image.
struct WinogradOutput {
  WinogradPlanes m = {};
  WinogradTiles tiles = {};
  TileEpilogue epilogue = {};    // scale, bias, relu
  WinogradImages residual = {};  // the epilogue's, if it has data
  WinogradImages y = {};
};

// z = A dy A^T of every tile, as panels of a contraction (kernels/gemm/contraction_internal.h)
// whose rows are `total_rows` tiles; the first one written is first_row. z.row is not used.
struct WinogradOutputGradient {
  WinogradImages dy = {};
  WinogradTiles tiles = {};
  int64_t first_row = 0, total_rows = 0;
  WinogradPlanes z = {};
};

// u[f][i] = G g G^T of `count` kernels; tap t of kernel i is at taps[t * tap_stride + i]. `turned`:
// the kernel is rotated by 180 degrees, the last tap comes first.
struct WinogradWeight {
  const float* taps = nullptr;
  int64_t tap_stride = 0, count = 0;
  bool turned = false;
  WinogradPlanes u = {};
};

// taps[t][r][i] (+)= G^T du G, with du the sum of `partials` (in order) that are partial_stride
// apart, for `rows` rows of `columns` kernels.
struct WinogradWeightGradient {
  WinogradPlanes du = {};
  int64_t partials = 1, partial_stride = 0;
  int64_t rows = 0, columns = 0;
  float* taps = nullptr;
  int64_t tap_stride = 0, tap_row = 0;
  bool accumulate = false;
};

// Vectors may read and write up to kWinogradPadding elements beyond the channels of a row of
// planes (not of images), and beyond `count` and `columns`.
inline constexpr int64_t kWinogradPadding = 16;

BINADE_ISA_KERNEL(winograd_input, const WinogradInput&)
BINADE_ISA_KERNEL(winograd_output, const WinogradOutput&)
BINADE_ISA_KERNEL(winograd_output_gradient, const WinogradOutputGradient&)
BINADE_ISA_KERNEL(winograd_weight, const WinogradWeight&)
BINADE_ISA_KERNEL(winograd_weight_gradient, const WinogradWeightGradient&)

// Sizes and memory that all three directions share.

// At least `floats` floats, rounded up to an odd number of cache lines: equal elements of
// neighbouring rows or planes then never compete for one cache set.
inline int64_t odd_lines(int64_t floats) { return ((floats + 15) / 16 | 1) * 16; }

// A tensor [N, C, H, W] as WinogradImages; it is copied if its strides require it.
class WinogradTensor {
 public:
  WinogradTensor(const View& view, Access access);
  const WinogradImages& images() const { return images_; }
  void store() const { pixels_.unpack(); }  // to the view, after writing

 private:
  PackedRows pixels_;
  Workspace zeros_;
  WinogradImages images_;
};

WinogradTiles winograd_tiles(const View& outputs);  // all of them

// True if Winograd can compute this convolution: 3 x 3 taps, stride, dilation and groups of 1, not
// f64.
bool winograd_can(DType dtype, const Conv2dSizes& size, const Conv2dGeometry& geometry);
enum class Conv2dPass : uint8_t { forward, backward_data, backward_weight };
// True if it is also faster. The rule depends on shape and instruction set only, nothing is timed.
bool winograd_pays(const Conv2dSizes& size, Conv2dPass pass);
// True if Winograd runs: the provider asks for it (conv2d_provider.h), or it pays and the mode is
// fast (math_mode.h).
bool winograd_runs(DType dtype, const Conv2dSizes& size, const Conv2dGeometry& geometry,
                   Conv2dPass pass);

// The three directions on the CPU. REQUIRES: winograd_can.
void winograd_forward(const Conv2dForward& a);
void winograd_backward_data(const Conv2dBackwardData& a);
void winograd_backward_weight(const Conv2dBackwardWeight& a);

}  // namespace binade::kernels
