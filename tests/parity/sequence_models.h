// The sequence models of the cases.
#pragma once
#include <binade/nn/module.h>

#include <memory>

#include <tests/parity/parity_case.h>

namespace binade::parity {

// Throws NotCovered for other models.
std::unique_ptr<nn::Module> make_sequence_model(const CaseFile& file, const Case& c);

}  // namespace binade::parity
