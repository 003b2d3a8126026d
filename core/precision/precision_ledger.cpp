#include <binade/core/autograd/op.h>
#include <binade/core/observe/label.h>
#include <binade/core/precision/precision_ledger.h>

#include <algorithm>
#include <string_view>

namespace binade {
namespace {

int64_t bytes_of(const Tensor& t, DType dtype) {
  return t.numel() * static_cast<int64_t>(size_of(dtype));
}

bool is_cast(const Op& op) {
  return std::string_view(op.name) == "cast" || std::string_view(op.name) == "policy_cast";
}

std::string dtypes_of(std::span<const Tensor* const> tensors) {
  std::string out;
  for (const Tensor* t : tensors) {
    if (t->defined()) {
      out += std::string(out.empty() ? "" : " ") + to_string(t->dtype());
    }
  }
  return out;
}

// Kernels compute f16 and bf16 in f32.
std::string inside_of(const OpEvent& event) {
  if (event.op.op_class == OpClass::movement) {
    return "-";
  }
  for (const Tensor* t : event.inputs) {
    if (t->defined() && is_floating(t->dtype())) {
      return to_string(compute_dtype(t->dtype()));
    }
  }
  return "-";
}

std::string reason_without_policy(const OpEvent& event) {
  return event.op.op_class == OpClass::movement ? "moves data only"
         : event.in_backward                    ? "a gradient has the dtype of its value"
                                                : "no policy in force";
}

// True if t is a half-precision value that was widened and then at most moved: narrowing it loses
// nothing.
bool only_moved_since_widened(const Tensor& t) {
  const Node* node = t.history().get();
  while (node && node->op && node->op->op_class == OpClass::movement && !node->released &&
         node->edge_count > 0) {
    const Node* from = node->edges[0].get();
    if (is_cast(*node->op)) {
      return from && is_half(from->dtype);
    }
    node = from;
  }
  return false;
}

}  // namespace

const char* to_string(PrecisionFinding::Kind kind) {
  constexpr const char* kName[] = {"long reduction", "cast ping-pong", "leaf without master"};
  return kName[kind];
}

void PrecisionLedger::policy(const PolicyEvent& event) {
  Entered entered{event.op.name,
                  event.module,
                  to_string(event.decision, event.precision, event.op.op_class),
                  0,
                  0,
                  0};
  for (size_t i = 0; i < event.inputs.size(); ++i) {
    const Tensor& input = *event.inputs[i];
    if (event.casts[i] == PolicyEvent::Cast::cached) {
      ++entered.cached;
    } else if (event.casts[i] == PolicyEvent::Cast::made) {
      ++entered.casts;
      entered.bytes += bytes_of(input, input.dtype()) + bytes_of(input, event.decision.dtype);
      lint_cast(event.op.name, event.module, input, event.decision.dtype);
    }
  }
  entered_.push_back(std::move(entered));
}

void PrecisionLedger::result(const OpEvent& event) {
  if (std::string_view(event.op.name) == "policy_cast") {
    return;  // part of the op that the cast is made for
  }
  lint(event);
  LedgerRow row{.module = label_text(event.module),
                .op = event.op.name,
                .op_class = event.op.op_class,
                .in_backward = event.in_backward,
                .inputs = dtypes_of(event.inputs),
                .inside = inside_of(event),
                .output = event.outputs.empty() || !event.outputs[0].defined()
                              ? "-"
                              : to_string(event.outputs[0].dtype()),
                .why = reason_without_policy(event)};
  Entered mine{};
  for (size_t i = entered_.size(); i-- > 0;) {
    if (entered_[i].op == event.op.name && entered_[i].module == event.module) {
      Entered& outer = entered_[i];  // an op may call itself, for another shape
      outer.casts += mine.casts;
      outer.cached += mine.cached;
      outer.bytes += mine.bytes;
      mine = std::move(outer);
      row.why = mine.why;
      entered_.resize(i);  // those after it began inside of it and had no result
    } else if (mine.op) {
      break;
    }
  }
  if (is_cast(event.op)) {
    const Tensor& x = *event.inputs[0];
    mine.casts = 1;
    mine.bytes = bytes_of(x, x.dtype()) + bytes_of(x, event.outputs[0].dtype());
    row.why = event.in_backward ? "gradient of a cast" : "the program's own cast";
  }
  const std::string key = text(row.module, "|", row.op, "|", row.in_backward, "|", row.inputs, "|",
                               row.output, "|", row.why);
  const auto [found, fresh] = index_.emplace(key, rows_.size());
  if (fresh) {
    rows_.push_back(std::move(row));
  }
  LedgerRow& total = rows_[found->second];
  ++total.calls;
  total.casts += mine.casts;
  total.cached += mine.cached;
  total.cast_bytes += mine.bytes;
}

void PrecisionLedger::lint(const OpEvent& event) {
  const char* op = event.op.name;
  if (is_cast(event.op)) {
    lint_cast(op, event.module, *event.inputs[0], event.outputs[0].dtype());
  }
  if (event.op.op_class == OpClass::reduction && !event.inputs.empty() && !event.outputs.empty() &&
      event.inputs[0]->defined() && is_half(event.outputs[0].dtype())) {
    const int64_t terms = event.inputs[0]->numel() / std::max<int64_t>(1, event.outputs[0].numel());
    const bool f16 = event.outputs[0].dtype() == DType::f16;
    if (terms > kLongReduction) {
      find(PrecisionFinding::long_reduction, op, event.module,
           text("reduces ", terms, " terms and stores ", event.outputs[0].dtype(), ", which has ",
                f16 ? "11 bits and ends at 65504" : "8 bits",
                "; keep the result in f32 with Store::apex or a rule {.op = \"", op,
                "\", .dtype = DType::f32}"));
    }
  }
  for (const Tensor* input : event.inputs) {
    const Node* node = input->defined() ? input->history().get() : nullptr;
    if (node && node->leaf && is_half(node->dtype) && event.recording && !event.in_backward &&
        !static_cast<const Leaf*>(node)->has_master) {
      find(PrecisionFinding::leaf_without_master, op, event.module,
           text("reads a trainable ", node->dtype,
                " leaf that has no f32 master: updates below half a unit of it are lost; use "
                "Precision::mixed, or keep the leaf in f32"));
    }
  }
}

void PrecisionLedger::lint_cast(const char* op, uint32_t module, const Tensor& from, DType to) {
  if (is_half(to) && from.dtype() == DType::f32 && only_moved_since_widened(from)) {
    find(PrecisionFinding::cast_ping_pong, op, module,
         text("narrows to ", to,
              " what was widened to f32 and only moved since; leave out both casts, or move the "
              "data in ",
              to));
  }
}

void PrecisionLedger::find(PrecisionFinding::Kind kind, const char* op, uint32_t module,
                           const std::string& what) {
  const std::string path = label_text(module);
  for (PrecisionFinding& known : findings_) {
    if (known.kind == kind && known.op == op && known.module == path) {
      ++known.count;
      return;
    }
  }
  findings_.push_back(
      {kind, op, path,
       text(to_string(kind), ": ", op, path.empty() ? "" : " in module ", path, " ", what), 1});
}

int64_t PrecisionLedger::casts() const {
  int64_t sum = 0;
  for (const LedgerRow& row : rows_) {
    sum += row.casts;
  }
  return sum;
}

int64_t PrecisionLedger::cast_bytes() const {
  int64_t sum = 0;
  for (const LedgerRow& row : rows_) {
    sum += row.cast_bytes;
  }
  return sum;
}

}  // namespace binade
