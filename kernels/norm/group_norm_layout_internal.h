// The memory of a tensor of group norm on the CPU. Internal to the CPU backend.
#pragma once
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/copy/packed_rows_internal.h>
#include <binade/kernels/norm/group_norm_internal.h>

#include <optional>

namespace binade::kernels {

// A tensor as planes or rows, copied if its memory is neither. An undefined view has no elements.
class GroupNormLayout {
 public:
  GroupNormLayout(const View& view, bool planes, const GroupNormSizes& d, Access access)
      : view_(view), d_(d), planes_(planes) {
    if (!view) {
      return;
    }
    if (!planes) {
      rows_.emplace(view, 1, access);
      data_ = rows_->data();
      stride_ = rows_->stride();
      return;
    }
    stride_ = d.inner;
    data_ = view.data;
    if (!view.contiguous) {
      dense_.emplace(static_cast<size_t>(view.numel) * size_of(view.dtype));
      data_ = dense_->as<std::byte>();
      if (access == Access::read) {
        cpu::copy({.x = view, .y = dense()});
      }
    }
  }
  bool planes() const { return planes_; }
  // Number of elements between planes or rows.
  int64_t stride() const { return stride_; }
  std::byte* at(int64_t image, int64_t channel, int64_t pixel) const {
    const int64_t element = planes_ ? (image * d_.channels + channel) * d_.inner + pixel
                                    : (image * d_.inner + pixel) * stride_ + channel;
    return data_ ? data_ + element * static_cast<int64_t>(size_of(view_.dtype)) : nullptr;
  }
  // Call it after writing: copies back if the tensor was packed.
  void unpack() const {
    if (rows_) {
      rows_->unpack();
    } else if (dense_) {
      cpu::copy({.x = dense(), .y = view_});
    }
  }

 private:
  View dense() const { return view_of(data_, view_.dtype, view_.sizes); }

  const View& view_;
  const GroupNormSizes& d_;
  bool planes_;
  std::optional<PackedRows> rows_;
  std::optional<Workspace> dense_;
  std::byte* data_ = nullptr;
  int64_t stride_ = 0;
};

}  // namespace binade::kernels
