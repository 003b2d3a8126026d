// Every kernel as a case of rows x cols elements, called on raw memory. bench/one times the cases
// and the kernel cards count them. Bytes and FLOPs are the minimum that the operation needs.
#pragma once
#include <binade/kernels/base/view.h>
#include <binade/kernels/base/workspace.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace binade::bench {

// Memory and views of one call, on any device.
class Operands {
 public:
  explicit Operands(Device device) : device_(device) {}
  Device device() const { return device_; }
  // Uninitialised, normal (0 to 255 for u8), or zero. Row-major unless strides are given.
  const View& empty(DType dtype, const Dims& sizes);
  const View& random(DType dtype, const Dims& sizes);
  const View& zeros(DType dtype, const Dims& sizes);
  // The same memory with other sizes and strides.
  const View& view(const View& of, const Dims& sizes, const Dims& strides);
  const View& channels_last(const View& of);  // `of` is [N, C, H, W] in any memory order
  // All blocks of memory.
  struct Block {
    const void* begin;
    size_t bytes;
  };
  std::vector<Block> blocks() const { return blocks_; }
  // The arrays in the order in which they were allocated; all are row-major.
  const std::vector<const View*>& arrays() const { return arrays_; }

 private:
  Device device_;
  std::deque<kernels::Workspace> memory_;
  std::vector<Block> blocks_;
  std::deque<View> views_;
  std::vector<const View*> arrays_;
  uint64_t seed_ = 1;
};

// One call, ready to be repeated.
struct Prepared {
  std::shared_ptr<Operands> operands;
  std::function<void()> run;
  double bytes = 0;            // minimum traffic: each byte read once and written once
  double flops = 0;            // multiply and add count as two; 0 if memory-bound
  double bytes_by_values = 0;  // additional bytes at most, depending on the operands' values
};

struct KernelCase {
  const char* name;
  const char* shape;  // what rows and cols mean
  Prepared (*prepare)(int64_t rows, int64_t cols, DType dtype, Device device);
};

const std::vector<KernelCase>& kernel_cases();
// Parts of the list; each is in the source of that name.
std::vector<KernelCase> index_kernel_cases();
std::vector<KernelCase> loss_cases();
std::vector<KernelCase> norm_cases();
std::vector<KernelCase> optimizer_kernel_cases();
std::vector<KernelCase> reduce_cases();
std::vector<KernelCase> selection_cases();
std::vector<KernelCase> sequence_kernel_cases();
// Shapes of GPT-2 and ResNet-50, not part of kernel_cases().
const std::vector<KernelCase>& model_cases();
// Finds one of kernel_cases() or model_cases(). Throws an Error that lists the names.
const KernelCase& find_case(const std::string& name);

// Used by sources of cases.
using Shared = std::shared_ptr<Operands>;
inline constexpr int64_t kImageSide = 16;
inline constexpr const char* kMatrix = "rows x cols elements";
inline constexpr const char* kImages = "rows images of 16x16 with cols channels";

inline double bytes_of(const View& v) {
  return static_cast<double>(v.numel) * static_cast<double>(size_of(v.dtype));
}
template <class... Views>
double bytes_of(const View& first, const Views&... rest) {
  return bytes_of(first) + bytes_of(rest...);
}

}  // namespace binade::bench
