#include <binade/core/io/directory_times_internal.h>

#include <algorithm>
#include <array>

namespace binade {

bool sets_directory_times(uint32_t kind) {
  constexpr std::array<uint32_t, 11> kKinds = {
      0xEF53,      // ext2, ext3, ext4
      0x58465342,  // XFS
      0x9123683E,  // Btrfs
      0x2FC12FC1,  // ZFS
      0xF2F52010,  // F2FS
      0x01021994,  // tmpfs
      0x794C7630,  // overlayfs
      0x73717368,  // SquashFS
      0x9660,      // ISO 9660
      0x6969,      // NFS
      0x0BD00BD0,  // Lustre
  };
  return std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end();
}

}  // namespace binade
