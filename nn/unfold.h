// Windows of images as columns and back (im2col, col2im); layers without parameters.
#pragma once
#include <binade/nn/conv.h>

namespace binade::nn {

struct UnfoldOptions {
  Pair kernel;
  Pair dilation = 1;
  Pair padding = 0;
  Pair stride = 1;
};

// [N, C, H, W] -> [N, C kh kw, windows], as binade::unfold.
class Unfold : public Module {
 public:
  using Options = UnfoldOptions;
  explicit Unfold(const UnfoldOptions& options);
  Unfold(Module& parent, std::string_view name, const UnfoldOptions& options) : Unfold(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

 private:
  UnfoldOptions options_;
};

struct FoldOptions {
  Pair output;  // height and width
  Pair kernel;
  Pair dilation = 1;
  Pair padding = 0;
  Pair stride = 1;
};

// [N, C kh kw, windows] -> [N, C, height, width], where elements of several windows add up.
class Fold : public Module {
 public:
  using Options = FoldOptions;
  explicit Fold(const FoldOptions& options);
  Fold(Module& parent, std::string_view name, const FoldOptions& options) : Fold(options) {
    join(parent, name);
  }
  Tensor forward(const Tensor& x) override;

 private:
  FoldOptions options_;
};

}  // namespace binade::nn
