// Exceptions to a precision policy, by op and by module path, from code or from a file:
//
//   Precision::mixed(DType::f16).with({{.op = "softmax", .dtype = DType::f32},
//                                      {.module = "encoder.*.norm", .dtype = DType::f32}})
//
//   {"store": "apex",
//    "overrides": [{"op": "softmax", "dtype": "fp32"},
//                  {"op": "linear", "sums": "f16/chunks=64"},
//                  {"class": "norm", "module": "encoder.*", "dtype": "fp32"}],
//    "formats": {"weights": "mxfp8", "gradients": "e5m2/tensor"}}
#pragma once
#include <binade/core/owned.h>
#include <binade/core/precision/precision.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace binade {

// Matching ops run with their floating inputs cast to `dtype`. A condition left out matches
// everything.
struct PrecisionRule {
  std::string op = {};  // a name of docs/op_classes.md, or several: "*_pool2d"
  std::optional<OpClass> op_class = {};
  // A path of modules, and everything below it: "encoder", "encoder.*.norm". * stands for any
  // characters within one name, ** for any number of names.
  std::string module = {};
  DType dtype = DType::f32;  // f32, f16 or bf16

  bool operator==(const PrecisionRule&) const = default;
};
// "op softmax in encoder.*: f32"
std::string to_string(const PrecisionRule& rule);

// True if the pattern matches the path or a path above it.
bool matches_module(std::string_view pattern, std::string_view path);
// True if a pattern of op names matches one: "*_pool2d".
bool matches_op(std::string_view pattern, std::string_view op);
// Throws unless the pattern is of names joined by dots.
void check_module_pattern(std::string_view pattern);

class SimulatedFormats;

// With its rules a precision also carries the formats that it simulates.
class PrecisionRules {
 public:
  explicit PrecisionRules(std::vector<PrecisionRule> rules,
                          std::shared_ptr<const SimulatedFormats> formats = {});
  ~PrecisionRules();
  PrecisionRules(const PrecisionRules&) = delete;
  PrecisionRules& operator=(const PrecisionRules&) = delete;

  const std::vector<PrecisionRule>& list() const { return rules_; }
  // core/precision/simulated_formats.h; null: none.
  const std::shared_ptr<const SimulatedFormats>& formats() const { return formats_; }
  // The last matching rule, or null. Cached per op and module; thread-safe.
  const PrecisionRule* find(const char* op, OpClass op_class, uint32_t module) const;
  // The last rule for all ops of a module: if it says f32, the module's parameters are kept in f32.
  const PrecisionRule* find_module(std::string_view path) const;
  // Throws if a rule, or one of the sums of formats(), names a module that none of the paths
  // contains.
  void check_modules(const std::vector<std::string>& paths) const;

 private:
  struct Found;
  std::vector<PrecisionRule> rules_;
  std::shared_ptr<const SimulatedFormats> formats_;
  Owned<Found> found_;
};

// `base` with the store, overrides and simulated formats of a JSON file as above; each may be left
// out.
// Throws one error that names the file and the entry if the file cannot be read, has another form,
// or names an op, class or dtype that does not exist.
Precision read_precision(const std::string& path, const Precision& base);

// A policy with its store and rules as one JSON object, for files: {"policy": "mixed-fp16",
// "store": "paper", "overrides": [...]}. The second reads it back; throws an error for other text.
std::string to_json(const Precision& precision);
Precision precision_of_json(const std::string& text);

}  // namespace binade
