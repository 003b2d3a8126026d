// Tensors by name: the contents of a checkpoint, and how they are matched with the tensors to load.
#pragma once
#include <binade/core/tensor/tensor.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace binade {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// A tensor to be filled; the source may have it under any one of the names.
struct LoadTarget {
  std::vector<std::string> names;
  Dims sizes;
  bool floating = true;  // else of integers or bool
};

// Returns the source of each target, in order. If anything does not match, throws one Error that
// begins with `op` and lists all missing and unexpected names and all wrong shapes and dtypes.
std::vector<Tensor> match_named(const char* op, std::span<const LoadTarget> targets,
                                const NamedTensors& sources);

// "3 missing: a, b, c": the first 16 names, and how many more there are.
std::string list_names(const std::vector<std::string>& names);

}  // namespace binade
