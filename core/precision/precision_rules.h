// Exceptions to a precision policy, by op and by module path, from code or from a file:
//
//   Precision::mixed(DType::f16).with({{.op = "softmax", .dtype = DType::f32},
//                                      {.module = "encoder.*.norm", .dtype = DType::f32}})
//
//   {"store": "apex",
//    "overrides": [{"op": "softmax", "dtype": "fp32"},
//                  {"class": "norm", "module": "encoder.*", "dtype": "fp32"}]}
#pragma once
#include <binade/core/precision/precision.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace binade {

// Ops that fit run with their floating inputs cast to `dtype`. What is left out fits everything.
struct PrecisionRule {
  std::string op = {};  // a name of docs/op_classes.md, or several: "*_pool2d"
  std::optional<OpClass> op_class = {};
  // A path of modules and all below it: "encoder", "encoder.*.norm". A * stands for any characters
  // within one name, ** for any number of names.
  std::string module = {};
  DType dtype = DType::f32;  // f32, f16 or bf16

  bool operator==(const PrecisionRule&) const = default;
};
// "op softmax in encoder.*: f32"
std::string to_string(const PrecisionRule& rule);

// Whether the pattern names the path or a path above it.
bool matches_module(std::string_view pattern, std::string_view path);

class PrecisionRules {
 public:
  explicit PrecisionRules(std::vector<PrecisionRule> rules);
  ~PrecisionRules();
  PrecisionRules(const PrecisionRules&) = delete;
  PrecisionRules& operator=(const PrecisionRules&) = delete;

  const std::vector<PrecisionRule>& list() const { return rules_; }
  // The last rule that fits, or null. Remembered per op and module; thread-safe.
  const PrecisionRule* find(const char* op, OpClass op_class, uint32_t module) const;
  // The last rule for all ops of a module: its parameters are kept in f32 where it says f32.
  const PrecisionRule* find_module(std::string_view path) const;
  // Throws if a rule names a module that none of the paths has.
  void check_modules(const std::vector<std::string>& paths) const;

 private:
  struct Found;
  std::vector<PrecisionRule> rules_;
  std::unique_ptr<Found> found_;
};

// `base` with the store and the overrides of a JSON file as above; both may be left out. A file
// that cannot be read, is not of this form, or names an op, class or dtype that does not exist is
// one error that names the file and the entry.
Precision read_precision(const std::string& path, const Precision& base);

}  // namespace binade
