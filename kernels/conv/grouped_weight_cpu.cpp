// Grouped convolution on the CPU, backward to the weight (grouped_internal.h). The images are split
// into blocks of images, rows and columns of dy, and blocks into partial sums whose number depends
// on the shape only; the partial sums are added in order. A block copies the padded window of x for
// a few vectors of channels at a time, so that its loops run in a near cache.
#include <binade/kernels/base/ceil_div.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/conv/conv2d_window_internal.h>
#include <binade/kernels/conv/grouped_internal.h>

#include <algorithm>

namespace binade::kernels {
namespace {

constexpr int64_t kMaxPartials = 8;
constexpr int64_t kPartialElements = 1 << 20;  // of all partial sums together, or a single one
constexpr int64_t kBlockElements = 48 * 1024;  // of the window of x
constexpr int64_t kBlockVectors = 4;
constexpr int64_t kBlockPixels = 512;  // of dy, in blocks of several images
constexpr int64_t kMinBlockColumns = 32;

// The channels [begin, begin + count) of a view [N, C, H, W].
View channels_of(const View& view, int64_t begin, int64_t count) {
  View part = view;
  part.data += begin * view.strides[1] * static_cast<int64_t>(size_of(view.dtype));
  part.sizes[1] = count;
  part.numel = count > 0 ? view.numel / view.size(1) * count : 0;
  part.contiguous = false;
  return part;
}

class GroupedWeightGradient {
 public:
  GroupedWeightGradient(const Conv2dBackwardWeight& a, const Conv2dSizes& size,
                        const GroupedLanes& lanes)
      : a_(a),
        d_(size),
        lanes_(lanes),
        compute_(compute_dtype(a.dw.dtype)),
        size_(static_cast<int64_t>(size_of(compute_))),
        dy_in_place_(a.dy.dtype == compute_ && (a.dy.strides[1] == 1 || a.dy.size(1) == 1)),
        rotations_(lane_rotations(lanes, 1)),
        vector_sums_(size.r * size.s * lanes.phases() * lanes.slots * lanes.lanes) {
    if (lanes.is_expanded()) {
      expanded_ = expanded_channels(lanes);
    }
    choose_blocks();
    partials_ = std::clamp<int64_t>(kPartialElements / (vector_sums_ * lanes.vectors()), 1,
                                    std::min(kMaxPartials, blocks()));
  }

  void run() {
    const Workspace sums(static_cast<size_t>(partials_ * lanes_.vectors() * vector_sums_ * size_));
    const auto body = [&](int64_t begin, int64_t end) {
      while (begin < end) {  // a range of channel blocks of one partial sum at a time
        const int64_t partial = begin / channel_blocks_, first = begin % channel_blocks_;
        const int64_t last = std::min(channel_blocks_, first + end - begin);
        accumulate(partial, first, last,
                   sums.as<std::byte>() + partial * lanes_.vectors() * vector_sums_ * size_);
        begin += last - first;
      }
    };
    const auto store = [&](int64_t begin, int64_t end) {
      dispatch_floating("conv2d_backward_weight", a_.dw.dtype, [&]<class T>(Type<T>) {
        for (int64_t vector = begin; vector < end; ++vector) {
          store_vector<T>(vector, sums.as<Compute<T>>() + vector * vector_sums_);
        }
      });
    };
    const double flops =
        2.0 * static_cast<double>(a_.dy.numel) * static_cast<double>(d_.r * d_.s * d_.group_c);
    if (flops < kSerialConvolutionFlops) {
      body(0, partials_ * channel_blocks_);
      store(0, lanes_.vectors());
    } else {
      parallel_for(partials_ * channel_blocks_, 1, body);
      parallel_for(lanes_.vectors(), 1 + 16384 / (partials_ * vector_sums_), store);
    }
  }

 private:
  // Pixels of x, along one axis, that `count` pixels of dy read.
  int64_t reach(int axis, int64_t count) const {
    const int64_t kernel = axis == 0 ? d_.r : d_.s;
    return (count - 1) * a_.geometry.stride[axis] + a_.geometry.dilation[axis] * (kernel - 1) + 1;
  }

  // Takes as many rows, columns or images of dy as a window of kBlockElements allows.
  void choose_blocks() {
    const int64_t vectors =
        lanes_.is_expanded() ? lanes_.vectors() : std::min(kBlockVectors, lanes_.vectors());
    channel_blocks_ = ceil_div(lanes_.vectors(), vectors);
    const int64_t pixel = lanes_.is_expanded() ? lanes_.pixel() + d_.c : vectors * lanes_.step;
    const auto most = [&](int axis, int64_t other) {  // outputs along an axis
      const int64_t size = kBlockElements / (pixel * other) - reach(axis, 1);
      return std::max<int64_t>(size, 0) / a_.geometry.stride[axis] + 1;
    };
    const int64_t columns =
        std::clamp(most(1, reach(0, 1)), std::min(kMinBlockColumns, d_.q), d_.q);
    const int64_t rows = std::clamp<int64_t>(most(0, reach(1, columns)), 1, d_.p);
    int64_t images = 1;
    if (rows == d_.p && columns == d_.q) {
      const int64_t image = reach(0, rows) * reach(1, columns) * pixel;
      images =
          std::clamp<int64_t>(kBlockElements / image, 1, ceil_div(kBlockPixels, rows * columns));
    }
    image_blocks_ = ceil_div(d_.n, images);
    row_blocks_ = ceil_div(d_.p, rows);
    column_blocks_ = ceil_div(d_.q, columns);
  }

  int64_t blocks() const { return image_blocks_ * row_blocks_ * column_blocks_; }

  struct Range {
    int64_t begin, end;
    int64_t size() const { return end - begin; }
  };
  struct Block {
    Range images, rows, columns;
  };
  Block block(int64_t i) const {
    const auto part = [](int64_t at, int64_t parts, int64_t size) {
      return Range{size * at / parts, size * (at + 1) / parts};
    };
    return {part(i / (row_blocks_ * column_blocks_), image_blocks_, d_.n),
            part(i / column_blocks_ % row_blocks_, row_blocks_, d_.p),
            part(i % column_blocks_, column_blocks_, d_.q)};
  }

  // The vectors of channel block i.
  Range vectors_of(int64_t i) const {
    return {lanes_.vectors() * i / channel_blocks_, lanes_.vectors() * (i + 1) / channel_blocks_};
  }

  struct Buffers {
    std::byte *x, *expanded, *dy;
  };

  // Adds the blocks of one partial into `sums` for the channel blocks [first, last).
  void accumulate(int64_t partial, int64_t first, int64_t last, std::byte* sums) const {
    const int64_t images = ceil_div(d_.n, image_blocks_), rows = ceil_div(d_.p, row_blocks_),
                  columns = ceil_div(d_.q, column_blocks_),
                  channels = ceil_div(lanes_.vectors(), channel_blocks_) * lanes_.step;
    const int64_t window = images * reach(0, rows) * reach(1, columns);
    const bool expands = lanes_.is_expanded();
    // x and the expanded x end with a vector that may be read.
    const int64_t x_bytes = (window * (expands ? d_.c : channels) + lanes_.lanes) * size_,
                  expanded_bytes = expands ? (window * lanes_.pixel() + lanes_.lanes) * size_ : 0,
                  dy_bytes = dy_in_place_ ? 0 : images * rows * columns * channels * size_;
    const Workspace workspace(static_cast<size_t>(x_bytes + expanded_bytes + dy_bytes));
    auto* x = workspace.as<std::byte>();
    const Buffers buffers{x, x + x_bytes, x + x_bytes + expanded_bytes};
    const Range range{blocks() * partial / partials_, blocks() * (partial + 1) / partials_};
    for (int64_t i = range.begin; i < range.end; ++i) {
      for (int64_t j = first; j < last; ++j) {
        add_block(block(i), vectors_of(j), buffers, sums, i > range.begin);
      }
    }
  }

  WindowData read_x(const Block& b, const Range& channels, const Buffers& buffers) const {
    Window window{};
    window.row0 = b.rows.begin * a_.geometry.stride[0] - a_.geometry.padding[0];
    window.row1 = window.row0 + reach(0, b.rows.size());
    window.column0 = b.columns.begin * a_.geometry.stride[1] - a_.geometry.padding[1];
    window.column1 = window.column0 + reach(1, b.columns.size());
    if (!lanes_.is_expanded()) {
      return copy_window(channels_of(a_.x, channels.begin, channels.size()), compute_,
                         b.images.begin, b.images.size(), window, buffers.x);
    }
    const WindowData read =
        read_window(a_.x, compute_, b.images.begin, b.images.size(), window, buffers.x);
    const int64_t pixel = lanes_.pixel(), row = window.columns() * pixel;
    for (int64_t i = 0; i < b.images.size() * window.rows(); ++i) {
      const int64_t at =
          i / window.rows() * read.image_stride + i % window.rows() * read.row_stride;
      grouped_expand_best(GroupedExpansion{.compute = compute_,
                                           .pixels = read.data + at * size_,
                                           .count = window.columns(),
                                           .pixel_step = read.column_stride,
                                           .channels = expanded_.data(),
                                           .elements = pixel,
                                           .expanded = buffers.expanded + i * row * size_});
    }
    return {buffers.expanded, window.rows() * row, row, pixel};
  }

  WindowData read_dy(const Block& b, const Range& channels, const Buffers& buffers) const {
    const Window window{b.rows.begin, b.rows.end, b.columns.begin, b.columns.end};
    return read_window(channels_of(a_.dy, channels.begin, channels.size()), compute_,
                       b.images.begin, b.images.size(), window, buffers.dy);
  }

  void add_block(const Block& b, const Range& vectors, const Buffers& buffers, std::byte* sums,
                 bool accumulate) const {
    const Range channels{vectors.begin * lanes_.step,
                         std::min(vectors.end * lanes_.step, lanes_.channels())};
    const WindowData x = read_x(b, channels, buffers), dy = read_dy(b, channels, buffers);
    std::vector<int64_t> offsets;
    for (int64_t r = 0; r < d_.r; ++r) {
      for (int64_t s = 0; s < d_.s; ++s) {
        for (int64_t phase = 0; phase < lanes_.phases(); ++phase) {
          offsets.push_back(r * a_.geometry.dilation[0] * x.row_stride +
                            s * a_.geometry.dilation[1] * x.column_stride +
                            phase * lanes_.channels());
        }
      }
    }
    for (int64_t i = vectors.begin; i < vectors.end; ++i) {
      const int64_t c = i * lanes_.step - channels.begin;
      grouped_weight_sums_best(
          GroupedWeightSums{.compute = compute_,
                            .lanes = lanes_,
                            .rotations = rotations_.data(),
                            .offsets = offsets.data(),
                            .tap_count = static_cast<int64_t>(offsets.size()),
                            .images = b.images.size(),
                            .rows = b.rows.size(),
                            .columns = b.columns.size(),
                            .x = x.data + c * size_,
                            .x_image = x.image_stride,
                            .x_row = a_.geometry.stride[0] * x.row_stride,
                            .x_column = a_.geometry.stride[1] * x.column_stride,
                            .dy = dy.data + c * size_,
                            .dy_image = dy.image_stride,
                            .dy_row = dy.row_stride,
                            .dy_column = dy.column_stride,
                            .count = std::min(lanes_.lanes, channels.size() - c),
                            .sums = sums + i * vector_sums_ * size_,
                            .accumulate = accumulate});
    }
  }

  // Adds the partial sums of a vector and writes them to dw.
  template <class T>
  void store_vector(int64_t vector, Compute<T>* sums) const {
    for (int64_t partial = 1; partial < partials_; ++partial) {
      const Compute<T>* other = sums + partial * lanes_.vectors() * vector_sums_;
      for (int64_t i = 0; i < vector_sums_; ++i) {
        sums[i] += other[i];
      }
    }
    const auto& [groups, reduced, produced, width, slots, lanes, step] = lanes_;
    const Dims& strides = a_.dw.strides;
    const int64_t first = vector * step, last = std::min(first + step, lanes_.channels());
    for (int64_t o = first; o < last; ++o) {
      const int64_t j = o % width;
      for (int64_t k = 0; k < width; ++k) {
        T* dw = a_.dw.as<T>() + (o - j + (j + k) % width) * strides[0] + j * strides[1];
        const Compute<T>* from = sums + k * lanes + (o - first);
        for (int64_t r = 0; r < d_.r; ++r) {
          for (int64_t s = 0; s < d_.s; ++s) {
            for (int64_t i = 0; i < reduced; i += width, from += slots * lanes) {
              dw[r * strides[2] + s * strides[3] + i * strides[1]] = T(*from);
            }
          }
        }
      }
    }
  }

  const Conv2dBackwardWeight& a_;
  const Conv2dSizes& d_;
  const GroupedLanes& lanes_;
  const DType compute_;
  const int64_t size_;
  const bool dy_in_place_;
  const std::vector<int32_t> rotations_;
  std::vector<int32_t> expanded_;
  const int64_t vector_sums_;  // elements: [taps][phases][slots][lanes]
  int64_t channel_blocks_ = 1, image_blocks_ = 1, row_blocks_ = 1, column_blocks_ = 1;
  int64_t partials_ = 1;
};

}  // namespace

void grouped_backward_weight(const Conv2dBackwardWeight& a, const Conv2dSizes& size,
                             const GroupedLanes& lanes) {
  GroupedWeightGradient(a, size, lanes).run();
}

}  // namespace binade::kernels
