// Parameters and optimizers for the training families.
#pragma once
#include <binade/optim/optimizer.h>

#include <memory>

#include <tests/parity/parity_case.h>

namespace binade::parity {

// Parameters "<prefix>0", "<prefix>1", ... of a case in one arena; zeros where `values` is false.
ParameterList make_parameters(const CaseFile& file, const Case& c, const std::string& prefix,
                              bool values, DType dtype);

// Makes the gradients of the parameters exactly these.
void set_gradients(const ParameterList& parameters, const std::vector<Tensor>& gradients);

// The optimizers of the family optim, with the settings of the cases.
std::unique_ptr<optim::Optimizer> make_optimizer(const std::string& op, const Json& hyper,
                                                 std::vector<optim::ParamGroup> groups);

}  // namespace binade::parity
