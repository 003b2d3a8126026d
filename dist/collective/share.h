// Collectives on what is not one tensor: numbers, texts, tensors by name. For what ranks agree on
// now and then, such as metrics and checkpoints.
#pragma once
#include <binade/core/io/named_tensors.h>
#include <binade/dist/collective/communicator.h>

#include <string>
#include <vector>

namespace binade::dist {

// Element by element over the ranks, in f64: the same bits on every rank.
std::vector<double> reduce_numbers(Communicator& group, const std::vector<double>& numbers,
                                   ReduceOp op = ReduceOp::sum);
// What rank `root` gives; the others' arguments are not looked at.
std::string broadcast_text(Communicator& group, const std::string& text, int root = 0);
// An uninitialized tensor on `device` of the dtype and the sizes that x has on rank `root`; there x
// itself. To receive it in.
Tensor broadcast_kind(Communicator& group, const Tensor& x, Device device, int root = 0);
// Names, dtypes, sizes and values of rank `root`, there the tensors themselves; on the CPU.
NamedTensors broadcast_tensors(Communicator& group, const NamedTensors& tensors, int root = 0);

}  // namespace binade::dist
