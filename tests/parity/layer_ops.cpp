// Parity names of convolution, pooling and normalisation. Parameters and statistics of norms are
// given in the dtype in which the engine keeps them: f32 with f16 and bf16 activations.
#include <binade/core/ops.h>

#include <tests/parity/parity_case.h>

namespace binade::parity {
namespace {

using Ops = std::map<std::string, Handler>;

void add_contractions(Ops& ops) {
  ops["conv2d"] = [](const Call& call) {
    Conv2dOptions geometry;
    read_pair(call.attr("stride"), geometry.stride);
    read_pair(call.attr("padding"), geometry.padding);
    read_pair(call.attr("dilation"), geometry.dilation);
    geometry.groups = call.attr("groups");
    return one(conv2d(call.in("x"), call.in("weight"), call.optional("bias"), geometry));
  };
}

Pool2dOptions window(const Call& call) {
  Pool2dOptions geometry;
  read_pair(call.attr("kernel_size"), geometry.kernel);
  read_pair(call.attr("stride"), geometry.stride);
  read_pair(call.attr("padding"), geometry.padding);
  geometry.ceil_mode = call.attr("ceil_mode");
  return geometry;
}

void add_pooling(Ops& ops) {
  ops["max_pool2d"] = [](const Call& call) {
    Pool2dOptions geometry = window(call);
    read_pair(call.attr("dilation"), geometry.dilation);
    return one(max_pool2d(call.in("x"), geometry));
  };
  ops["avg_pool2d"] = [](const Call& call) {
    Pool2dOptions geometry = window(call);
    geometry.count_include_pad = call.attr("count_include_pad");
    return one(avg_pool2d(call.in("x"), geometry));
  };
  ops["adaptive_avg_pool2d"] = [](const Call& call) {
    const Json& size = call.attr("output_size");
    return one(adaptive_avg_pool2d(call.in("x"), size.at(0), size.at(1)));
  };
}

Outputs run_batch_norm(const Call& call) {
  const Tensor& x = call.in("x");
  const auto statistic = [&](const char* name) {
    const Tensor given = call.optional(name);
    if (!given.defined()) {
      return given;
    }
    Tensor copy = empty(given.sizes(), compute_dtype(x.dtype()), x.device());
    copy.copy_(given.detach());
    return copy;
  };
  const Tensor mean = statistic("running_mean"), var = statistic("running_var");
  Outputs outputs = one(batch_norm(x, as_statistic(call.optional("weight"), x),
                                   as_statistic(call.optional("bias"), x), mean, var,
                                   {.training = call.attr("training"),
                                    .momentum = call.attr("momentum"),
                                    .eps = call.attr("eps")}));
  if (mean.defined()) {
    outputs["running_mean"] = mean;
    outputs["running_var"] = var;
  }
  return outputs;
}

}  // namespace

Tensor as_statistic(const Tensor& t, const Tensor& x) {
  return t.defined() ? cast(t, compute_dtype(x.dtype())) : t;
}

const std::map<std::string, Handler>& layer_ops() {
  static const Ops ops = [] {
    Ops made;
    add_contractions(made);
    add_pooling(made);
    made["batch_norm"] = run_batch_norm;
    return made;
  }();
  return ops;
}

}  // namespace binade::parity
