// Op classes: the kind of arithmetic of an op, which decides its dtype under a precision policy. An
// op states its class once, in its definition (core/autograd/op.h); the build generates the table
// of all ops from these definitions.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace binade {

struct Op;

enum class OpClass : uint8_t {
  contraction,     // low precision in, f32 accumulation, low precision out
  pointwise,       // low precision
  wide_pointwise,  // exp, log, pow, softplus, reciprocal: f32 inside
  reduction,       // f32 inside
  norm,            // f32 inside, statistics and parameters f32
  loss,            // f32
  movement,        // no arithmetic
};
inline constexpr OpClass kOpClasses[] = {
    OpClass::contraction, OpClass::pointwise, OpClass::wide_pointwise, OpClass::reduction,
    OpClass::norm,        OpClass::loss,      OpClass::movement};

const char* to_string(OpClass op_class);
OpClass parse_op_class(const std::string& name);

struct OpInfo {
  std::string name;
  OpClass op_class;
};
// Every op of the library and of declare_op(), by name. Thread-safe.
std::vector<OpInfo> op_classes();
// docs/op_classes.md: the classes under each policy, and the ops of each.
std::string op_classes_page();
// Registers a user-defined op, so that rules can name it and docs list it. Once is enough; a name
// that an op of another class already has is an error.
void declare_op(const Op& op);

}  // namespace binade
