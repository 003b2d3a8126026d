// docs/op_classes.md, generated from the table of ops and the policies themselves.
#include <binade/core/precision/op_class.h>
#include <binade/core/precision/precision.h>

namespace binade {
namespace {

const char* meaning_of(OpClass op_class) {
  switch (op_class) {
    case OpClass::contraction: return "sums of products: low precision in, summed in f32, low out";
    case OpClass::pointwise: return "element by element, safe in low precision";
    case OpClass::wide_pointwise: return "element by element, of a range that f16 does not hold";
    case OpClass::reduction: return "sums over an axis; summed in f32";
    case OpClass::norm: return "statistics and parameters in f32";
    case OpClass::loss: return "computed in f32, returned in f32";
    case OpClass::movement: return "no arithmetic; follows its input";
  }
  return "";
}

// "f16 -> f32": the dtype to which an op of the class casts its inputs, and its result's dtype.
std::string flow(OpClass op_class, const Precision& precision, DType given) {
  const Decision decision = decide("", op_class, 0, precision, given);
  const DType in = decision.casts ? decision.dtype : given;
  const DType out = op_class == OpClass::loss ? DType::f32 : in;
  return std::string(to_string(in)) + " → " + to_string(out);
}

}  // namespace

std::string op_classes_page() {
  const DType low = DType::f16;
  const Precision columns[] = {Precision::autocast(low),
                               Precision::autocast(low).with(Store::paper), Precision::mixed(low),
                               Precision::mixed(low).with(Store::apex), Precision::half(low)};
  std::string out =
      "# Op classes\n\n"
      "Made by `binade op-classes` from the ops' own definitions (`core/ops/*.cpp`,\n"
      "`kernels/pointwise/pointwise.h`); do not edit.\n"
      "An op's class decides its dtype under a precision policy ([mixed_precision.md]"
      "(mixed_precision.md)).\n\n"
      "## What a class means\n\n"
      "Each cell: the dtype in which floating inputs are taken → the dtype of the result; for an\n"
      "f32 input, then for an f16 input. All arithmetic is f32 whatever is stored; bf16 in place "
      "of\n"
      "f16 reads alike, and f64 stays f64. The default store is apex for autocast and paper for\n"
      "mixed and half.\n\n"
      "| class | what it does | autocast (apex) | autocast, paper | mixed (paper) | mixed, apex | "
      "half (paper) |\n|---|---|---|---|---|---|---|\n";
  for (OpClass op_class : kOpClasses) {
    out += std::string("| ") + to_string(op_class) + " | " + meaning_of(op_class) + " |";
    for (const Precision& precision : columns) {
      out += " " + flow(op_class, precision, DType::f32) + ", " + flow(op_class, precision, low) +
             " |";
    }
    out += "\n";
  }
  out +=
      "\nAn op of single elements is `wide_pointwise` where its result grows faster than products\n"
      "of its inputs (exp, pow, 1/x), or is a logarithm. Else it is `pointwise`, whatever its\n"
      "formula calls: elu takes exp of negative numbers only.\n";
  out += "\n## The ops\n\n| class | ops |\n|---|---|\n";
  const std::vector<OpInfo> ops = op_classes();
  for (OpClass op_class : kOpClasses) {
    std::string names;
    for (const OpInfo& op : ops) {
      if (op.op_class == op_class) {
        names += (names.empty() ? "`" : ", `") + op.name + "`";
      }
    }
    out += std::string("| ") + to_string(op_class) + " | " + names + " |\n";
  }
  return out + "\nWeight decay is no op: optimizers apply it to the f32 masters.\n";
}

}  // namespace binade
