// Shared by the graphs of norms by cuDNN: operands, refusals and the forward operation.
#pragma once
#include <binade/kernels/cudnn/cudnn_graph_internal.h>
#include <binade/kernels/norm/batch_norm.h>

#include <string>

namespace binade::kernels::cudnn_norm {

// The sizes [N, C, H, W] for a tensor [N, C, ...].
inline Dims image_sizes(const View& x) {
  Dims sizes{x.size(0), x.size(1), x.dim() > 2 ? x.size(2) : 1, 1};
  for (int i = 3; i < x.dim(); ++i) {
    sizes[3] *= x.size(i);
  }
  return sizes;
}
inline cudnn::Operand image(const View& x) {
  const Dims sizes = image_sizes(x);
  return cudnn::operand(x, sizes, channels_last_strides(sizes));
}
// channels() is for a vector [C] of parameters or statistics, rows() for statistics [N] of rows.
inline cudnn::Operand channels(const View& v) {
  const Dims sizes{1, v.numel, 1, 1};
  return cudnn::operand(v, sizes, channels_last_strides(sizes));
}
inline cudnn::Operand rows(const View& v) {
  return cudnn::operand(v, {v.numel, 1, 1, 1}, {1, 1, 1, 1});
}

inline bool usable(const View& x, std::string& why) {
  if (!cudnn::missing().empty()) {
    why = cudnn::missing();
  } else if (x.dtype == DType::f64) {
    why = "cuDNN has no norms of f64";
  } else if (x.numel == 0) {
    why = "x is empty";
  } else {
    return true;
  }
  return false;
}

inline bool refuse(std::string& why, const char* reason) {
  why = reason;
  return false;
}

// The options are the mode and whether there is a mean (and with it a bias). The operands of the
// forward are x, scale, epsilon, y, rstd, then mean and bias; those of the backward x, dy, scale,
// rstd, dx, dscale, then mean and dbias.
cudnn::Object& add_forward(cudnn::Graph& graph, const cudnn::Problem& p, cudnn::Descriptor y);

// Runs a batch norm as library_norm does, but does not count the call.
bool library_batch_norm(const BatchNormForward& a, std::string& why);

}  // namespace binade::kernels::cudnn_norm
