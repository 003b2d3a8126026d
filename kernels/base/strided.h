// Iteration over a few strided operands of a pointwise kernel. Operand 0 (the output) decides the
// order: dimensions of size 1 are dropped, the rest are sorted by operand 0's strides, and adjacent
// dimensions that form one range in every operand are merged. So plain, transposed and
// channels-last tensors all become one or a few long inner loops.
//
// The unit of work is a block of at most kBlock elements of one innermost row. Block bounds depend
// on the shapes only, so a vectorised body gives the same bits at any thread count.
#pragma once
#include <binade/kernels/base/view.h>

#include <initializer_list>

namespace binade::kernels {

inline constexpr int kMaxOperands = 8;   // of a loop
inline constexpr int kTileOperands = 4;  // of a loop that runs over tiles
// Below this many elements a kernel stays on the calling thread.
inline constexpr int64_t kSerialElements = 32768;

// Results of at least this many bytes are stored past the caches (non-temporal stores), because
// they would evict everything else. The number is fixed, so that the same code runs on every
// machine.
inline constexpr int64_t kNontemporalBytes = int64_t(32) << 20;

// A tile of rows x n elements, with n along `inner`, of all operands. Strides are in bytes.
struct StridedTile {
  std::byte* data[kTileOperands];
  int64_t inner[kTileOperands];
  int64_t outer[kTileOperands];
  int64_t rows, n;
  bool nontemporal = false;  // a hint for operand 0, which is then dense and no input
};

// A borrowed callable that works on one tile.
class TileBody {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, TileBody>)
      TileBody(F&& f)  // NOLINT(google-explicit-constructor)
      : object_(const_cast<void*>(static_cast<const void*>(&f))),
        call_([](void* object, const StridedTile& tile) {
          (*static_cast<std::remove_reference_t<F>*>(object))(tile);
        }) {}
  void operator()(const StridedTile& tile) const { call_(object_, tile); }

 private:
  void* object_;
  void (*call_)(void*, const StridedTile&);
};

// The loop nest after merging, innermost dimension first.
class StridedLoop {
 public:
  static constexpr int64_t kBlock = 4096;

  // Operands broadcast to operand 0's sizes, aligned at the last dimension. An undefined operand
  // gets null data and stride 0. `op` names the caller in errors about sizes.
  StridedLoop(const char* op, std::initializer_list<const View*> operands);

  // Calls body on tiles that cover all elements, on several threads if there are enough elements.
  // REQUIRES: at most kTileOperands operands.
  void run(TileBody body) const;

  int64_t numel() const { return numel_; }
  int dims() const { return dims_; }
  int64_t size(int dim) const { return size_[dim]; }
  int64_t stride(int operand, int dim) const { return stride_[operand][dim]; }  // bytes
  std::byte* data(int operand) const { return data_[operand]; }

 private:
  void run_range(int64_t begin, int64_t end, int64_t row_blocks, const TileBody& body) const;
  void move_to(int64_t row, StridedTile& tile) const;

  int operands_ = 0;
  int dims_ = 0;
  int64_t numel_ = 1;
  int64_t size_[kMaxDims];
  int64_t stride_[kMaxOperands][kMaxDims];
  std::byte* data_[kMaxOperands];
};

// Calls body on parts of a tile of one row, on several threads. The parts depend on the count only.
void run_flat_parts(const StridedTile& tile, TileBody body);

// Calls body on a tile of one row of `numel` elements, or on parts of it if it is long.
template <class F>
inline void run_flat(StridedTile tile, int64_t numel, const F& body) {
  tile.rows = 1;
  tile.n = numel;
  if (numel <= kSerialElements) [[likely]] {
    body(tile);
  } else {
    run_flat_parts(tile, body);
  }
}

// True if all views have the same sizes and are row-major: one flat loop.
inline bool all_flat(const View& a, const View& b) {
  return a.contiguous && b.contiguous && a.sizes == b.sizes;
}
inline bool all_flat(const View& a, const View& b, const View& c) {
  return c.contiguous && all_flat(a, b) && a.sizes == c.sizes;
}

}  // namespace binade::kernels
