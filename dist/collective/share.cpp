#include <binade/core/tensor/create.h>
#include <binade/dist/collective/share.h>

#include <cstring>

namespace binade::dist {
namespace {

// The data by which other ranks create the root's tensors: for each its name, a zero byte, its
// dtype and its sizes.
struct TensorHead {
  DType dtype;
  int64_t dims, sizes[kMaxDims];
};

std::string heads_of(const NamedTensors& tensors) {
  std::string heads;
  for (const auto& [name, tensor] : tensors) {
    TensorHead head{};
    head.dtype = tensor.dtype();
    head.dims = tensor.dim();
    for (int i = 0; i < tensor.dim(); ++i) {
      head.sizes[i] = tensor.size(i);
    }
    heads.append(name).push_back('\0');
    heads.append(reinterpret_cast<const char*>(&head), sizeof head);
  }
  return heads;
}

NamedTensors tensors_of(const std::string& heads) {
  NamedTensors tensors;
  for (size_t at = 0; at < heads.size();) {
    std::string name = heads.c_str() + at;
    at += name.size() + 1;
    TensorHead head;
    std::memcpy(&head, heads.data() + at, sizeof head);
    at += sizeof head;
    Dims sizes;
    for (int64_t i = 0; i < head.dims; ++i) {
      sizes.push_back(head.sizes[i]);
    }
    tensors.emplace_back(std::move(name), empty(sizes, head.dtype));
  }
  return tensors;
}

}  // namespace

std::vector<double> reduce_numbers(Communicator& group, const std::vector<double>& numbers,
                                   ReduceOp op) {
  const Tensor x = from_values(std::span<const double>(numbers),
                               {static_cast<int64_t>(numbers.size())}, DType::f64);
  group.all_reduce(x, op);
  return {x.data<double>(), x.data<double>() + x.numel()};
}

std::string broadcast_text(Communicator& group, const std::string& text, int root) {
  const Tensor length = full({1}, static_cast<double>(text.size()), DType::i64);
  group.broadcast(length, root);
  const Tensor bytes = empty({length.data<int64_t>()[0]}, DType::u8);
  char* data = reinterpret_cast<char*>(bytes.view().data);
  if (group.rank() == root) {
    text.copy(data, text.size());
  }
  group.broadcast(bytes, root);
  return {data, static_cast<size_t>(bytes.numel())};
}

Tensor broadcast_kind(Communicator& group, const Tensor& x, Device device, int root) {
  const Tensor head = zeros({2 + kMaxDims}, DType::i64);
  auto* header = head.data<int64_t>();
  const bool gives = group.rank() == root;
  if (gives) {
    header[0] = static_cast<int64_t>(x.dtype());
    header[1] = x.dim();
    for (int i = 0; i < x.dim(); ++i) {
      header[2 + i] = x.size(i);
    }
  }
  group.broadcast(head, root);
  Dims sizes;
  for (int64_t i = 0; i < header[1]; ++i) {
    sizes.push_back(header[2 + i]);
  }
  return gives ? x : empty(sizes, static_cast<DType>(header[0]), device);
}

NamedTensors broadcast_tensors(Communicator& group, const NamedTensors& tensors, int root) {
  const bool gives = group.rank() == root;
  const std::string heads = broadcast_text(group, gives ? heads_of(tensors) : "", root);
  NamedTensors out = gives ? tensors : tensors_of(heads);
  for (const auto& [name, tensor] : out) {
    group.broadcast(tensor, root);
  }
  return out;
}

}  // namespace binade::dist
