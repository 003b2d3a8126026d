// The stand-in for libcudnn on the emulated device, in three parts: objects and their attributes
// (fake_cudnn.cpp), the rules that a graph must obey (fake_cudnn_rules.cpp), and the computation of
// a graph in double (fake_cudnn_compute.cpp).
#pragma once
#include <binade/kernels/cudnn/cudnn_api_internal.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace binade::kernels::cudnn::fake {

// The value of an attribute.
struct Value {
  AttributeType type;
  int64_t count;
  std::vector<std::byte> bytes;
  std::vector<std::shared_ptr<struct Object>> objects;  // for kTypeDescriptor
};

struct Engine {
  const char* name;
  std::vector<NumericalNote> notes;
  int64_t workspace;
  bool works;  // an engine that Binade must not choose fails when it runs
};

// The object behind a descriptor. Finalized objects do not change and live as long as their users.
struct Object {
  DescriptorType type = kTensor;
  bool finalized = false;
  std::map<int, Value> values;
  Engine engine{};  // of engines and engine configurations

  bool has(Attribute a) const { return values.count(a) != 0; }
  template <class T>
  T get(Attribute a, size_t i = 0) const {
    return reinterpret_cast<const T*>(values.at(a).bytes.data())[i];
  }
  std::vector<int64_t> list(Attribute a) const {
    const auto* first = reinterpret_cast<const int64_t*>(values.at(a).bytes.data());
    return {first, first + values.at(a).count};
  }
  const Object& at(Attribute a) const { return *values.at(a).objects.at(0); }
};

// A kind of attribute: its owner, its type, the number of values, and whether an object can be
// finalized without it.
struct Rule {
  DescriptorType owner;
  AttributeType type;
  int64_t most;
  bool required;
};
const Rule* rule_of(Attribute attribute);
// Throws a std::string that says what is wrong with the object.
void check_object(const Object& object);

using Sizes = std::vector<int64_t>;
inline Sizes sizes_of(const Object& tensor) { return tensor.list(kTensorDimensions); }
inline Sizes strides_of(const Object& tensor) { return tensor.list(kTensorStrides); }
inline int64_t id_of(const Object& tensor) { return tensor.get<int64_t>(kTensorId); }
bool flag(const Object& tensor, Attribute which);
// The inputs or outputs of an operation; there is at least one output.
std::vector<const Object*> inputs_of(const Object& operation);
std::vector<const Object*> outputs_of(const Object& operation);
size_t width_of(int type);

// Data of the tensors in memory, by id. Numbers passed by value are copied.
struct Memory {
  std::map<int64_t, void*> pointers;
  std::map<int64_t, double> numbers;
};
// Computes a finalized graph. Relu maps NaN to 0 unless `keeps_nan`.
void compute(const Object& graph, const Memory& memory, bool keeps_nan);

}  // namespace binade::kernels::cudnn::fake
