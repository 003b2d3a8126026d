#include <binade/nn/freeze_others.h>

#include <unordered_set>

namespace binade::nn {

struct FreezeOthers::Frozen {
  std::vector<Module::Shared> parameters;
};

FreezeOthers::FreezeOthers(Module& model, const ParameterList& parameters)
    : FreezeOthers(model, std::vector{&parameters}) {}

FreezeOthers::FreezeOthers(Module& model, const std::vector<const ParameterList*>& parameters)
    : frozen_(std::make_unique<Frozen>()) {
  std::unordered_set<const TensorData*> kept;
  for (const ParameterList* list : parameters) {
    for (const Parameter& parameter : *list) {
      kept.insert(parameter.value.handle().get());
    }
  }
  for (Module::Shared& parameter : model.shared_parameters()) {
    const Tensor& value = parameter.tensor();
    if (value.requires_grad() && !kept.contains(value.handle().get())) {
      Module::set_trainable(parameter, false);
      frozen_->parameters.push_back(std::move(parameter));
    }
  }
}

FreezeOthers::~FreezeOthers() {
  for (const Module::Shared& parameter : frozen_->parameters) {
    Module::set_trainable(parameter, true);
  }
}

}  // namespace binade::nn
