// masked_select on the CPU: with known offsets the chunks of the mask are independent.
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/strided.h>
#include <binade/kernels/index/masked_select.h>

#include <algorithm>

namespace binade::kernels::cpu {
namespace {

// Iterates over the elements of a view in row-major order.
class Walk {
 public:
  Walk(const View& view, int64_t first) : view_(view), at_(Dims::of(view.dim())) {
    for (int d = view.dim() - 1; d >= 0; --d) {
      at_[d] = first % view.size(d);
      offset_ += at_[d] * view.strides[d];
      first /= view.size(d);
    }
  }
  int64_t offset() const { return offset_; }
  const Dims& position() const { return at_; }
  void advance() {
    for (int d = view_.dim() - 1; d >= 0; --d) {
      offset_ += view_.strides[d];
      if (++at_[d] < view_.size(d)) {
        return;
      }
      offset_ -= at_[d] * view_.strides[d];
      at_[d] = 0;
    }
  }

 private:
  const View& view_;
  Dims at_;
  int64_t offset_ = 0;
};

// Calls f(chunk, first element, end) on several threads.
template <class F>
void for_each_chunk(const View& mask, F&& f) {
  const int64_t chunks = mask_offsets(mask.numel) - 1;
  parallel_for(chunks, kSerialElements / kMaskChunk, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t first = chunk * kMaskChunk;
      f(chunk, first, first + kMaskChunk < mask.numel ? first + kMaskChunk : mask.numel);
    }
  });
}

bool chosen(const View& mask, const Walk& at) { return mask.as<const uint8_t>()[at.offset()] != 0; }

}  // namespace

void mask_count(const MaskCount& a) {
  check_arguments(a);
  int64_t* offsets = a.offsets.as<int64_t>();
  for_each_chunk(a.mask, [&](int64_t chunk, int64_t first, int64_t end) {
    int64_t count = 0;
    Walk at(a.mask, first);
    for (int64_t i = first; i < end; ++i, at.advance()) {
      count += chosen(a.mask, at);
    }
    offsets[chunk + 1] = count;
  });
  offsets[0] = 0;
  for (int64_t i = 1; i < a.offsets.numel; ++i) {
    offsets[i] += offsets[i - 1];
  }
}

void masked_select(const MaskedSelect& a) {
  check_arguments(a);
  dispatch_width(a.y.dtype, [&]<class W>(Type<W>) {
    for_each_chunk(a.mask, [&](int64_t chunk, int64_t first, int64_t end) {
      W* y = a.y.as<W>() + a.offsets.as<int64_t>()[chunk];
      Walk mask(a.mask, first), x(a.x, first);
      for (int64_t i = first; i < end; ++i, mask.advance(), x.advance()) {
        if (chosen(a.mask, mask)) {
          *y++ = a.x.as<const W>()[x.offset()];
        }
      }
    });
  });
}

void mask_positions(const MaskPositions& a) {
  check_arguments(a);
  const int rank = a.mask.dim();
  for_each_chunk(a.mask, [&](int64_t chunk, int64_t first, int64_t end) {
    int64_t* y = a.y.as<int64_t>() + a.offsets.as<int64_t>()[chunk] * rank;
    Walk at(a.mask, first);
    for (int64_t i = first; i < end; ++i, at.advance()) {
      if (chosen(a.mask, at)) {
        y = std::copy(at.position().begin(), at.position().end(), y);
      }
    }
  });
}

void masked_spread(const MaskedSpread& a) {
  check_arguments(a);
  dispatch_width(a.y.dtype, [&]<class W>(Type<W>) {
    for_each_chunk(a.mask, [&](int64_t chunk, int64_t first, int64_t end) {
      int64_t k = a.offsets.as<int64_t>()[chunk];
      Walk mask(a.mask, first), y(a.y, first);
      for (int64_t i = first; i < end; ++i, mask.advance(), y.advance()) {
        const bool keep = chosen(a.mask, mask);
        a.y.as<W>()[y.offset()] = keep ? a.x.as<const W>()[k * a.x.strides[0]] : W(0);
        k += keep;
      }
    });
  });
}

}  // namespace binade::kernels::cpu
