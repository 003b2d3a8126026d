// Parity names of convolutions and of the norms over rows and groups. Weights and biases of norms
// are given in the dtype in which the engine keeps them: f32 with f16 and bf16 activations.
#include <binade/core/ops.h>
#include <binade/core/ops/conv.h>

#include <tests/parity/parity_case.h>

namespace binade::parity {
namespace {

using Ops = std::map<std::string, Handler>;

Tensor statistic(const Call& call, const char* name) {
  const Tensor t = call.optional(name);
  return t.defined() ? cast(t, compute_dtype(call.in("x").dtype())) : t;
}

Outputs run_conv1d(const Call& call) {
  return one(conv1d(call.in("x"), call.in("weight"), call.optional("bias"),
                    {.stride = call.attr("stride").at(0),
                     .padding = call.attr("padding").at(0),
                     .dilation = call.attr("dilation").at(0),
                     .groups = call.attr("groups")}));
}

Outputs run_conv_transpose1d(const Call& call) {
  return one(conv_transpose1d(call.in("x"), call.in("weight"), call.optional("bias"),
                              {.stride = call.attr("stride").at(0),
                               .padding = call.attr("padding").at(0),
                               .dilation = call.attr("dilation").at(0),
                               .groups = call.attr("groups"),
                               .output_padding = call.attr("output_padding").at(0)}));
}

Outputs run_conv_transpose2d(const Call& call) {
  ConvTranspose2dOptions options;
  read_pair(call.attr("stride"), options.stride);
  read_pair(call.attr("padding"), options.padding);
  read_pair(call.attr("dilation"), options.dilation);
  read_pair(call.attr("output_padding"), options.output_padding);
  options.groups = call.attr("groups");
  return one(conv_transpose2d(call.in("x"), call.in("weight"), call.optional("bias"), options));
}

void add_norms(Ops& ops) {
  ops["layer_norm"] = [](const Call& call) {
    return one(layer_norm(call.in("x"), dims(call.attr("normalized_shape")),
                          statistic(call, "weight"), statistic(call, "bias"), call.attr("eps")));
  };
  ops["rms_norm"] = [](const Call& call) {
    return one(rms_norm(call.in("x"), dims(call.attr("normalized_shape")),
                        statistic(call, "weight"), call.attr("eps").get<double>()));
  };
  ops["group_norm"] = [](const Call& call) {
    return one(group_norm(call.in("x"), call.attr("num_groups"), statistic(call, "weight"),
                          statistic(call, "bias"), call.attr("eps")));
  };
  ops["instance_norm"] = [](const Call& call) {
    return one(instance_norm(call.in("x"), statistic(call, "weight"), statistic(call, "bias"),
                             call.attr("eps")));
  };
}

}  // namespace

const std::map<std::string, Handler>& conv_ops() {
  static const Ops ops = [] {
    Ops made;
    made["conv1d"] = run_conv1d;
    made["conv_transpose1d"] = run_conv_transpose1d;
    made["conv_transpose2d"] = run_conv_transpose2d;
    add_norms(made);
    return made;
  }();
  return ops;
}

}  // namespace binade::parity
