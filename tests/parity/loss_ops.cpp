// Parity names of losses. Class weights are given in the dtype that the engine keeps them in: f32
// for f16 and bf16 inputs.
#include <binade/core/ops.h>

#include <tests/parity/parity_case.h>

namespace binade::parity {
namespace {

using Ops = std::map<std::string, Handler>;

Reduction reduction_of(const Call& call) {
  return parse_reduction(call.attr("reduction").get<std::string>());
}

Outputs run_cross_entropy(const Call& call) {
  const Tensor& x = call.in("input");
  return one(cross_entropy(x, call.in("target"),
                           {.reduction = reduction_of(call),
                            .ignore_index = call.attr("ignore_index"),
                            .label_smoothing = call.attr("label_smoothing"),
                            .weight = as_statistic(call.optional("weight"), x)}));
}

Outputs run_nll_loss(const Call& call) {
  const Tensor& x = call.in("input");
  return one(nll_loss(x, call.in("target"),
                      {.reduction = reduction_of(call),
                       .ignore_index = call.attr("ignore_index"),
                       .weight = as_statistic(call.optional("weight"), x)}));
}

Outputs run_ctc_loss(const Call& call) {
  return one(ctc_loss(call.in("logits"), call.in("targets"), call.in("input_lengths"),
                      call.in("target_lengths"),
                      {.blank = call.attr("blank"),
                       .reduction = reduction_of(call),
                       .zero_infinity = call.attr("zero_infinity")}));
}

void add_pointwise(Ops& ops) {
  using Plain = Tensor (*)(const Tensor&, const Tensor&, Reduction);
  const std::map<std::string, Plain> plain = {{"mse_loss", mse_loss}, {"l1_loss", l1_loss}};
  for (const auto& [name, op] : plain) {
    ops[name] = [op = op](const Call& call) {
      return one(op(call.in("input"), call.in("target"), reduction_of(call)));
    };
  }
  ops["smooth_l1_loss"] = [](const Call& call) {
    return one(
        smooth_l1_loss(call.in("input"), call.in("target"), call.attr("beta"), reduction_of(call)));
  };
  ops["huber_loss"] = [](const Call& call) {
    return one(
        huber_loss(call.in("input"), call.in("target"), call.attr("delta"), reduction_of(call)));
  };
  ops["bce"] = [](const Call& call) {
    return one(bce(call.in("input"), call.in("target"),
                   {.reduction = reduction_of(call), .weight = call.optional("weight")}));
  };
  ops["bce_with_logits"] = [](const Call& call) {
    return one(bce_with_logits(call.in("input"), call.in("target"),
                               {.reduction = reduction_of(call),
                                .weight = call.optional("weight"),
                                .pos_weight = call.optional("pos_weight")}));
  };
  ops["kl_div"] = [](const Call& call) {
    return one(kl_div(call.in("input"), call.in("target"),
                      {.reduction = reduction_of(call), .log_target = call.attr("log_target")}));
  };
}

void add_margins(Ops& ops) {
  ops["triplet_margin_loss"] = [](const Call& call) {
    return one(triplet_margin_loss(call.in("anchor"), call.in("positive"), call.in("negative"),
                                   {.reduction = reduction_of(call),
                                    .margin = number(call.attr("margin")),
                                    .p = number(call.attr("p")),
                                    .eps = number(call.attr("eps")),
                                    .swap = call.attr("swap")}));
  };
  ops["cosine_embedding_loss"] = [](const Call& call) {
    return one(cosine_embedding_loss(call.in("x"), call.in("y"), call.in("target"),
                                     number(call.attr("margin")), reduction_of(call)));
  };
  ops["margin_ranking_loss"] = [](const Call& call) {
    return one(margin_ranking_loss(call.in("x"), call.in("y"), call.in("target"),
                                   number(call.attr("margin")), reduction_of(call)));
  };
  ops["hinge_embedding_loss"] = [](const Call& call) {
    return one(hinge_embedding_loss(call.in("x"), call.in("target"), number(call.attr("margin")),
                                    reduction_of(call)));
  };
}

void add_likelihoods(Ops& ops) {
  ops["gaussian_nll_loss"] = [](const Call& call) {
    return one(gaussian_nll_loss(call.in("x"), call.in("target"), call.in("var"),
                                 {.reduction = reduction_of(call),
                                  .full = call.attr("full"),
                                  .eps = number(call.attr("eps"))}));
  };
  ops["poisson_nll_loss"] = [](const Call& call) {
    return one(poisson_nll_loss(call.in("x"), call.in("target"),
                                {.reduction = reduction_of(call),
                                 .log_input = call.attr("log_input"),
                                 .full = call.attr("full"),
                                 .eps = number(call.attr("eps"))}));
  };
}

}  // namespace

const std::map<std::string, Handler>& loss_ops() {
  static const Ops ops = [] {
    Ops made;
    made["cross_entropy"] = run_cross_entropy;
    made["nll_loss"] = run_nll_loss;
    made["ctc_loss"] = run_ctc_loss;
    made["cosine_similarity"] = [](const Call& call) {
      return one(
          cosine_similarity(call.in("x1"), call.in("x2"), call.attr("dim"), call.attr("eps")));
    };
    add_pointwise(made);
    add_margins(made);
    add_likelihoods(made);
    return made;
  }();
  return ops;
}

}  // namespace binade::parity
