// Collectives on other data than one tensor: numbers, texts, named tensors. For occasional use,
// such as metrics and checkpoints.
#pragma once
#include <binade/core/io/named_tensors.h>
#include <binade/dist/collective/communicator.h>

#include <string>
#include <vector>

namespace binade::dist {

// Reduces element by element over the ranks, in f64: the same bits on every rank.
std::vector<double> reduce_numbers(Communicator& group, const std::vector<double>& numbers,
                                   ReduceOp op = ReduceOp::sum);
// Returns the text of rank `root`; the other ranks' arguments are ignored.
std::string broadcast_text(Communicator& group, const std::string& text, int root = 0);
// A tensor to receive x of rank `root`: uninitialized, on `device`, with the dtype and sizes of x
// there. Returns x itself on rank `root`.
Tensor broadcast_kind(Communicator& group, const Tensor& x, Device device, int root = 0);
// Names, dtypes, sizes and values of rank `root`, on the CPU; returns the tensors themselves there.
NamedTensors broadcast_tensors(Communicator& group, const NamedTensors& tensors, int root = 0);

}  // namespace binade::dist
