// The ledger and the policies as text.
#include <binade/core/io/json_text.h>
#include <binade/core/observe/text_table_internal.h>
#include <binade/core/precision/precision_ledger.h>
#include <binade/core/precision/precision_rules.h>

namespace binade {

std::string PrecisionLedger::table() const {
  std::vector<std::vector<std::string>> cells{
      {"module", "op", "pass", "calls", "in", "inside", "out", "casts", "cached", "bytes", "why"}};
  int64_t cached = 0;
  for (const LedgerRow& row : rows_) {
    cached += row.cached;
    cells.push_back({row.module.empty() ? "-" : row.module, row.op,
                     row.in_backward ? "backward" : "forward", std::to_string(row.calls),
                     row.inputs, row.inside, row.output, std::to_string(row.casts),
                     std::to_string(row.cached), std::to_string(row.cast_bytes), row.why});
  }
  std::string out = text_table(cells) + text(casts(), " casts, ", cast_bytes(),
                                             " bytes read and written by them, ", cached,
                                             " casts saved by the cache\n");
  for (const PrecisionFinding& finding : findings_) {
    out += text(finding.text, finding.count > 1 ? text(" (", finding.count, " times)") : "", "\n");
  }
  return out;
}

std::string PrecisionLedger::jsonl() const {
  std::string out;
  const auto field = [](const char* name, const std::string& value) {
    return json_quoted(name) + ": " + json_quoted(value) + ", ";
  };
  for (const LedgerRow& row : rows_) {
    out += "{" + field("module", row.module) + field("op", row.op) +
           field("class", to_string(row.op_class)) +
           field("pass", row.in_backward ? "backward" : "forward") + field("in", row.inputs) +
           field("inside", row.inside) + field("out", row.output) + field("why", row.why) +
           text("\"calls\": ", row.calls, ", \"casts\": ", row.casts, ", \"cached\": ", row.cached,
                ", \"cast_bytes\": ", row.cast_bytes, "}\n");
  }
  for (const PrecisionFinding& finding : findings_) {
    out += "{" + field("finding", to_string(finding.kind)) + field("op", finding.op) +
           field("module", finding.module) + field("text", finding.text) +
           text("\"count\": ", finding.count, "}\n");
  }
  return out;
}

std::string explain_precision(const Precision& precision) {
  std::vector<std::vector<std::string>> cells{{"class", "given", "in", "inside", "out", "why"}};
  for (OpClass op_class : kOpClasses) {
    for (DType given : {DType::f32, precision.low}) {
      const Decision decision = decide("", op_class, 0, precision, given);
      const DType in = decision.casts ? decision.dtype : given;
      const bool moves = op_class == OpClass::movement;
      cells.push_back({to_string(op_class), to_string(given), to_string(in), moves ? "-" : "f32",
                       op_class == OpClass::loss ? "f32" : to_string(in),
                       to_string(decision, precision, op_class)});
    }
  }
  std::string out = to_string(precision) +
                    (precision.from_environment ? ", from BINADE_PRECISION" : "") +
                    text(": weights ", precision.low_weights() ? precision.low : DType::f32,
                         precision.masters() ? " with f32 masters" : "", "\n") +
                    text_table(cells);
  for (size_t i = 0; precision.rules && i < precision.rules->list().size(); ++i) {
    out += "rule " + to_string(precision.rules->list()[i]) + "\n";
  }
  return out;
}

}  // namespace binade
