// The destructors of tensors, for the fuzzers alone: a Sample may hold tensors, but no target makes
// one, so their engine is not compiled.
#include <binade/core/tensor/tensor.h>

#include <cstdlib>

namespace binade {

void TensorData::destroy(TensorData*) noexcept { std::abort(); }
void Storage::destroy(Storage*) noexcept { std::abort(); }
void Node::destroy(Node*) noexcept { std::abort(); }

}  // namespace binade
