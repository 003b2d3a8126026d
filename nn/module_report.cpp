#include <binade/core/observe/label.h>
#include <binade/core/observe/text_table_internal.h>
#include <binade/core/precision/precision_ledger.h>
#include <binade/core/precision/precision_rules.h>
#include <binade/core/precision/simulated_formats.h>
#include <binade/nn/module_report_internal.h>
#include <binade/nn/module_walk_internal.h>

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <typeinfo>

namespace binade::nn {

std::string class_name(const std::type_info& type) {
  const char* mangled = type.name();
  int status = 0;
  char* readable = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  std::string name = status == 0 ? readable : mangled;
  std::free(readable);
  return name;
}

std::string class_name(const Module& module) { return class_name(typeid(module)); }

namespace {

uint32_t label_of(std::string_view path) {
  uint32_t label = 0;
  while (!path.empty()) {
    const size_t dot = path.find('.');
    label = intern_label(label, path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return label;
}

// "f16" if inputs of f32 and of the low dtype both become f16; "as given" if they keep their dtype.
std::string taken(OpClass op_class, uint32_t label, const Precision& precision) {
  const Decision wide = decide("", op_class, label, precision, DType::f32);
  const Decision low = decide("", op_class, label, precision, precision.low);
  const std::string dtype = wide.dtype == low.dtype ? to_string(wide.dtype) : "as given";
  return wide.why == Decision::kRule ? dtype + " (rule)" : dtype;
}

}  // namespace

std::string ModuleReport::describe() const {
  std::vector<std::array<std::string, 5>> rows = {{"name", "shape", "dtype", "elements", ""}};
  int64_t total = 0, trained = 0;
  for (const Module::Shared& parameter : module_.shared_parameters()) {
    const Tensor& t = parameter.tensor();
    const bool trainable = parameter.members[0].own->trainable;
    std::string remark = trainable ? "" : "frozen";
    for (size_t i = 1; i < parameter.members.size(); ++i) {
      remark += (remark.empty() ? "also " : ", also ") + parameter.members[i].path;
    }
    rows.push_back({parameter.name(), to_string(t.sizes()), to_string(t.dtype()),
                    std::to_string(t.numel()), remark});
    total += t.numel();
    trained += trainable ? t.numel() : 0;
  }
  for (const Module::Buffer& buffer : module_.buffers()) {
    const Tensor& t = *buffer.tensor;
    rows.push_back({buffer.path, to_string(t.sizes()), to_string(t.dtype()),
                    std::to_string(t.numel()), "buffer"});
  }
  size_t widths[4] = {};
  for (const auto& row : rows) {
    for (size_t i = 0; i < 4; ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < 4; ++i) {
      const std::string pad(widths[i] - row[i].size(), ' ');
      line += i == 3 ? pad + row[i] + "  " : row[i] + pad + "  ";
    }
    line += row[4];
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out + text(total, " parameters, ", trained, " of them trained\n");
}

// The policy and its rules, module by module.
std::vector<std::shared_ptr<const SimulatedFormats>> ModuleReport::delayed_formats() const {
  std::vector<std::shared_ptr<const SimulatedFormats>> all;
  module_.walk("", [&](const std::string&, const Module& module) {
    const auto rules = module.precision_ ? module.precision_->rules : nullptr;
    const auto formats = rules ? rules->formats() : nullptr;
    const bool is_new = std::find(all.begin(), all.end(), formats) == all.end();
    if (formats && formats->has_delayed() && is_new) {
      all.push_back(formats);
    }
  });
  return all;
}

std::string ModuleReport::explain_precision() const {
  const Precision precision = module_.precision_.value_or(Precision::full());
  std::vector<std::vector<std::string>> cells{{"module", "parameters", "stored", "masters"}};
  for (OpClass op_class : kOpClasses) {
    if (op_class != OpClass::movement) {
      cells[0].push_back(to_string(op_class));
    }
  }
  std::string rules;
  module_.walk(module_.path(), [&](const std::string& at, const Module& module) {
    int64_t count = 0;
    std::string stored, masters = "-";
    for (const auto& own : module.own_parameters_) {
      const std::string dtype = to_string(own->tensor->dtype());
      stored += stored.find(dtype) == std::string::npos ? (stored.empty() ? "" : " ") + dtype : "";
      masters = module_.master_of(*own->tensor).defined() ? "f32" : masters;
      count += own->tensor->numel();
    }
    const Precision& its = module.precision_ ? *module.precision_ : precision;
    cells.push_back({at.empty() ? "(root)" : at, std::to_string(count),
                     stored.empty() ? "-" : stored, masters});
    for (OpClass op_class : kOpClasses) {
      if (op_class != OpClass::movement) {
        cells.back().push_back(taken(op_class, label_of(at), its));
      }
    }
  });
  for (size_t i = 0; precision.rules && i < precision.rules->list().size(); ++i) {
    rules += "rule " + to_string(precision.rules->list()[i]) + "\n";
  }
  return to_string(precision) + (precision.from_environment ? ", from BINADE_PRECISION" : "") +
         "\n" + text_table(cells) + rules;
}

}  // namespace binade::nn
