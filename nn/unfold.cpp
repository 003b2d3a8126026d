#include <binade/core/ops/image.h>
#include <binade/nn/unfold.h>
#include <binade/nn/window_internal.h>

namespace binade::nn {
namespace {

template <class Options>
binade::UnfoldOptions windows_of(const Options& options) {
  return {.kernel = options.kernel,
          .dilation = options.dilation,
          .padding = options.padding,
          .stride = options.stride};
}

}  // namespace

Unfold::Unfold(const UnfoldOptions& options) : options_(options) {
  check_window("Unfold", {options.kernel, options.stride, options.padding, options.dilation});
}

Tensor Unfold::forward(const Tensor& x) { return unfold(x, windows_of(options_)); }

Fold::Fold(const FoldOptions& options) : options_(options) {
  check_sizes("Fold", {{"output", smaller(options.output)}});
  check_window("Fold", {options.kernel, options.stride, options.padding, options.dilation});
}

Tensor Fold::forward(const Tensor& x) {
  return fold(x, options_.output.vertical, options_.output.horizontal, windows_of(options_));
}

}  // namespace binade::nn
