// Parity cases: reads the files, and has the helpers of all families' runners. The format and the
// meaning of every field are those of binade-parity-1.
#pragma once
#include <binade/core/io/safetensors.h>
#include <binade/core/tensor/tensor.h>
#include <binade/kernels/conv/pair.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <tests/op_table/array.h>

namespace binade::parity {

using Json = nlohmann::json;
using op_table::Array;

// Thrown if the engine has no such op, or documents that it does not accept such operands.
struct NotCovered {
  std::string what;
};

struct Case {
  std::string name, op;
  Json attrs;
  std::map<std::string, std::string> inputs;  // argument to tensor key; absent ones left out
  std::vector<std::string> requires_grad;
  std::map<std::string, std::string> outputs, grad_outputs, grads;
  std::map<std::string, Json> layout;
  bool expects_error = false;
  double len = 1;

  bool is_half_exact() const { return name.ends_with("_f16"); }
};

class CaseFile {
 public:
  explicit CaseFile(const std::string& path);
  const std::string& family() const { return family_; }
  const std::vector<Case>& cases() const { return cases_; }
  Array values(const std::string& key) const;
  DType stored_dtype(const std::string& key) const;
  // The tensor: in the dtype under test if it is floating, in its own otherwise.
  Tensor tensor(const std::string& key, DType floating) const;

 private:
  SafetensorsFile file_;
  std::string family_;
  std::vector<Case> cases_;
};

// Collects the first deviation of a case.
class Checker {
 public:
  explicit Checker(double len) : len_(len) {}
  // The tolerance for results of a dtype: c units of the largest expected magnitude, or of
  // `fallback` if all expected values are 0.
  void expect(const std::string& name, const Tensor& got, const Array& want, double c = 8,
              double fallback = 0);
  // The same tolerance, plus `more`, for the root mean square of all differences.
  void expect_on_the_whole(const std::string& name, const Tensor& got, const Array& want, double c,
                           double more = 0);
  void expect_exact(const std::string& name, const Tensor& got, const Array& want);
  // Each element within `relative` of its expected value.
  void expect_relative(const std::string& name, const Array& got, const Array& want,
                       double relative);
  void fail(const std::string& what);
  const std::string& failure() const { return failure_; }

 private:
  void compare(const std::string& name, const Array& got, const Array& want,
               const std::function<double(double)>& tolerance);
  double len_;
  std::string failure_;
};

// Attributes.
double number(const Json& value);  // also "inf" and "-inf"
Dims dims(const Json& list);
inline void read_pair(const Json& list, Pair& out) { out = {list.at(0), list.at(1)}; }
// A weight, bias or statistic of a norm in the dtype in which x is computed.
Tensor as_statistic(const Tensor& t, const Tensor& x);

// Runs a case in a dtype; returns what is wrong, or an empty text. Throws NotCovered.
std::string run_case(const CaseFile& file, const Case& c, DType dtype);

// The families, grouped by the headers that they need. Each throws NotCovered for an op that it
// does not know.
using Outputs = std::map<std::string, Tensor>;
inline Outputs one(Tensor y) { return {{"out", std::move(y)}}; }
// "out0", "out1", ...
inline Outputs numbered(const std::vector<Tensor>& parts) {
  Outputs outputs;
  for (size_t i = 0; i < parts.size(); ++i) {
    outputs["out" + std::to_string(i)] = parts[i];
  }
  return outputs;
}
struct Call {
  const Case& c;
  std::map<std::string, Tensor> inputs;
  const Tensor& in(const std::string& name) const { return inputs.at(name); }
  Tensor optional(const std::string& name) const;  // undefined where absent
  const Json& attr(const char* name) const { return c.attrs.at(name); }
};
using Handler = std::function<Outputs(const Call&)>;
const std::map<std::string, Handler>& tensor_ops();     // elementwise, softmax, shapes
const std::map<std::string, Handler>& pointwise_ops();  // options, selection
const std::map<std::string, Handler>& layer_ops();      // contractions, pooling, norms
const std::map<std::string, Handler>& reduce_ops();     // reductions, sorts
const std::map<std::string, Handler>& sequence_ops();   // attention, recurrent layers
const std::map<std::string, Handler>& module_ops();     // modules made of several ops
const std::map<std::string, Handler>& index_ops();      // rearranging, indexing, resampling
const std::map<std::string, Handler>& conv_ops();
const std::map<std::string, Handler>& loss_ops();
const std::map<std::string, Handler>& matmul_ops();
const std::map<std::string, Handler>& linalg_ops();

bool is_training_op(const std::string& family);
std::string run_training_case(const CaseFile& file, const Case& c, DType dtype);
std::string run_model_case(const CaseFile& file, const Case& c, DType dtype);

}  // namespace binade::parity
