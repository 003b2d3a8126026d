// Crops and resizes 8-bit pictures: antialiased bilinear or bicubic, the arithmetic and thus the
// pixels of Pillow's Image.resize(). Columns first, then rows, each rounded to 8 bits; weights have
// 22 bits after the point and sums are exact integers, so every instruction set gives the same.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace binade::kernels {

enum class ResampleFilter : uint8_t { bilinear, bicubic };

// One direction: `length` pixels from `begin` on become `out` pixels, of which `count` from `first`
// on are computed. Only pixels of [0, in) take part. REQUIRES: in, out, count >= 1, length > 0,
// 0 <= begin, begin + length <= in, 0 <= first, first + count <= out.
struct ResampleAxis {
  int in = 0;
  double begin = 0, length = 0;
  int out = 0;
  int first = 0, count = 0;

  // True if the outputs are the inputs begin + first ...
  bool is_copy() const;
};

struct ResampleBytes {
  const uint8_t* x = nullptr;  // [rows.in, columns.in, channels]
  ptrdiff_t x_stride = 0;      // bytes from a row to the next
  int channels = 0;
  ResampleAxis rows = {}, columns = {};
  ResampleFilter filter = ResampleFilter::bilinear;
  uint8_t* y = nullptr;  // [rows.count, columns.count, channels], dense
};

// The inputs [first, last) that the outputs of an axis need.
struct ResampleRange {
  int first, last;
};
ResampleRange inputs_of(const ResampleAxis& axis, ResampleFilter filter);

// Resamples pictures one after another on one thread and keeps its buffers for the next.
class Resampler {
 public:
  void operator()(const ResampleBytes& a);

 private:
  struct Weights {
    std::vector<int32_t> first;    // [count] first input of each output
    std::vector<int32_t> groups;   // [count + 1] where the groups of each output begin
    std::vector<int16_t> weights;  // per group of 4 taps: 4 high parts, 4 low parts
  };
  void weigh(const ResampleAxis& axis, ResampleFilter filter, Weights& out);
  void resample_columns(const ResampleBytes& a, ResampleRange rows);
  void resample_rows(const ResampleBytes& a, const uint8_t* x, ptrdiff_t stride, int first_row);
  void release_if_large();

  Weights rows_, columns_;
  std::vector<double> taps_;
  std::vector<uint8_t> middle_;  // the columns resampled
  std::vector<uint8_t> tail_;    // a copy of the last rows, with bytes to read after them
  std::vector<const uint8_t*> row_of_tap_;
};

}  // namespace binade::kernels
