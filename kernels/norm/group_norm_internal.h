// The sizes of a group norm call; checked_sizes() throws if the arguments do not fit each other.
#pragma once
#include <binade/kernels/norm/group_norm.h>

namespace binade::kernels {

// x as [images, channels, inner], with channels in groups of group_channels.
struct GroupNormSizes {
  int64_t images, channels, inner, groups, group_channels;

  int64_t group_count() const { return inner * group_channels; }  // elements of a group
};

GroupNormSizes checked_sizes(const GroupNormForward& a);
GroupNormSizes checked_sizes(const GroupNormBackward& a);

}  // namespace binade::kernels
