#include <tests/parity/training_support.h>

#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/optim/adagrad.h>
#include <binade/optim/adamw.h>
#include <binade/optim/lamb.h>
#include <binade/optim/lars.h>
#include <binade/optim/rmsprop.h>
#include <binade/optim/sgd.h>

namespace binade::parity {

ParameterList make_parameters(const CaseFile& file, const Case& c, const std::string& prefix,
                              bool values, DType dtype) {
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (size_t i = 0; c.inputs.count(prefix + std::to_string(i)); ++i) {
    const std::string name = prefix + std::to_string(i);
    const Tensor given = file.tensor(c.inputs.at(name), dtype);
    tensors.emplace_back(name, values ? given : zeros(given.sizes(), dtype, given.device()));
  }
  std::vector<ParameterSlot> slots;
  for (auto& [name, tensor] : tensors) {
    slots.push_back({.name = name, .handles = {&tensor}, .dtype = dtype});
  }
  const std::shared_ptr<Arena> arena = Arena::build(slots, false);
  return {arena, arena->parameters()};
}

void set_gradients(const ParameterList& parameters, const std::vector<Tensor>& gradients) {
  std::vector<Seed> seeds;
  for (size_t i = 0; i < parameters.size(); ++i) {
    // d(p * g) / dp is g times an upstream gradient of 1.
    seeds.push_back({mul(parameters[i].value, gradients[i]),
                     ones(gradients[i].sizes(), gradients[i].dtype(), gradients[i].device())});
  }
  backward(seeds);
}

std::unique_ptr<optim::Optimizer> make_optimizer(const std::string& op, const Json& hyper,
                                                 std::vector<optim::ParamGroup> groups) {
  if (op == "sgd") {
    return std::make_unique<optim::SGD>(std::move(groups),
                                        optim::SGDOptions{.lr = hyper.at("lr"),
                                                          .momentum = hyper.at("momentum"),
                                                          .dampening = hyper.at("dampening"),
                                                          .weight_decay = hyper.at("weight_decay"),
                                                          .nesterov = hyper.at("nesterov")});
  }
  if (op == "rmsprop") {
    return std::make_unique<optim::RMSprop>(
        std::move(groups), optim::RMSpropOptions{.lr = hyper.at("lr"),
                                                 .alpha = hyper.at("alpha"),
                                                 .eps = hyper.at("eps"),
                                                 .weight_decay = hyper.at("weight_decay"),
                                                 .momentum = hyper.at("momentum"),
                                                 .centered = hyper.at("centered")});
  }
  if (op == "adagrad") {
    return std::make_unique<optim::Adagrad>(
        std::move(groups),
        optim::AdagradOptions{.lr = hyper.at("lr"),
                              .lr_decay = hyper.at("lr_decay"),
                              .weight_decay = hyper.at("weight_decay"),
                              .initial_accumulator_value = hyper.at("initial_accumulator_value"),
                              .eps = hyper.at("eps")});
  }
  if (op == "lars") {
    return std::make_unique<optim::LARS>(
        std::move(groups), optim::LARSOptions{.lr = hyper.at("lr"),
                                              .momentum = hyper.at("momentum"),
                                              .weight_decay = hyper.at("weight_decay"),
                                              .trust_coefficient = hyper.at("trust_coefficient"),
                                              .eps = hyper.at("eps")});
  }
  if (op != "adam" && op != "adamw" && op != "lamb") {
    throw NotCovered{op};
  }
  const optim::Betas betas(hyper.at("betas").at(0), hyper.at("betas").at(1));
  if (op == "lamb") {
    return std::make_unique<optim::LAMB>(
        std::move(groups), optim::LAMBOptions{.lr = hyper.at("lr"),
                                              .betas = betas,
                                              .eps = hyper.at("eps"),
                                              .weight_decay = hyper.at("weight_decay")});
  }
  optim::AdamWOptions options{.lr = hyper.at("lr"),
                              .betas = betas,
                              .eps = hyper.at("eps"),
                              .weight_decay = hyper.at("weight_decay"),
                              .amsgrad = hyper.at("amsgrad")};
  if (op == "adamw") {
    return std::make_unique<optim::AdamW>(std::move(groups), options);
  }
  return std::make_unique<optim::Adam>(std::move(groups),
                                       optim::AdamOptions{options.lr, options.betas, options.eps,
                                                          options.weight_decay, options.amsgrad});
}

}  // namespace binade::parity
