// Tensors by name: what checkpoints hold, and how a state is matched with the tensors it shall
// fill.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace binade {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// A tensor to be filled; any one of the names may occur in the source.
struct LoadTarget {
  std::vector<std::string> names;
  Dims sizes;
};

// The source of each target, in their order. If anything does not match, throws one Error that
// begins with `op` and lists all missing and unexpected names and all wrong shapes. Floating
// sources only.
std::vector<Tensor> match_named(const char* op, std::span<const LoadTarget> targets,
                                const NamedTensors& sources);

// "3 missing: a, b, c": the first 16 names and how many more.
std::string list_names(const std::vector<std::string>& names);

}  // namespace binade
