#include <binade/core/observe/label.h>
#include <binade/core/precision/precision_rules.h>
#include <binade/core/precision/simulated_formats.h>
#include <binade/kernels/base/error.h>

#include <map>
#include <mutex>

namespace binade {
namespace {

// Glob match: * stands for any characters, also none.
bool matches_name(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = std::string_view::npos, from = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') {
    ++p;
  }
  return p == pattern.size();
}

// Returns the first name of a path and sets `rest` to the names after it.
std::string_view first_name(std::string_view path, std::string_view& rest) {
  const size_t dot = path.find('.');
  rest = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  return path.substr(0, dot);
}

void check_rule(const PrecisionRule& rule, const std::vector<OpInfo>& ops) {
  check(rule.dtype == DType::f32 || is_half(rule.dtype), "precision rule: got dtype ", rule.dtype,
        ", expected f32, f16 or bf16");
  bool known = rule.op.empty(), computes = known;
  for (const OpInfo& op : ops) {
    const bool fits = matches_name(rule.op, op.name);
    known |= fits;
    computes |= fits && op.op_class != OpClass::movement;
  }
  check(known, "precision rule: no op is named '", rule.op,
        "'; docs/op_classes.md lists them, and declare_op() adds one of your own");
  check(computes && rule.op_class != OpClass::movement, "precision rule: '",
        rule.op.empty() ? "movement" : rule.op,
        "' moves data only and follows its input; name an op that computes");
  check_module_pattern(rule.module);
}

// Throws if the pattern fits none of the paths.
void check_names_one(const std::string& module, const std::vector<std::string>& paths) {
  bool fits = module.empty();
  std::string names;
  for (const std::string& path : paths) {
    fits |= !path.empty() && matches_module(module, path);
    if (!path.empty() && names.size() < 300) {
      names += (names.empty() ? "" : ", ") + path;
    }
  }
  check(fits, "precision rule: no module is named '", module, "'; the model has ",
        names.empty() ? "none" : names);
}

}  // namespace

std::string to_string(const PrecisionRule& rule) {
  std::string out = rule.op.empty() ? "" : "op " + rule.op;
  if (rule.op_class) {
    out += text(out.empty() ? "" : ", ", "class ", to_string(*rule.op_class));
  }
  out += out.empty() && rule.module.empty() ? "every op" : "";
  if (!rule.module.empty()) {
    out += (out.empty() ? "module " : " in ") + rule.module;
  }
  return text(out, ": ", rule.dtype);
}

// As matches_name(), over the names of a path: only the last ** is ever given more names, so the
// time grows with the product of the lengths.
bool matches_module(std::string_view pattern, std::string_view path) {
  bool star = false;
  std::string_view after_star, from, more_pattern, more_path;
  while (!pattern.empty()) {
    const std::string_view name = first_name(pattern, more_pattern);
    if (name == "**") {
      star = true;
      after_star = pattern = more_pattern;
      from = path;
    } else if (!path.empty() && matches_name(name, first_name(path, more_path))) {
      pattern = more_pattern;
      path = more_path;
    } else if (star && !from.empty()) {
      first_name(from, more_path);
      from = path = more_path;
      pattern = after_star;
    } else {
      return false;
    }
  }
  return true;
}

bool matches_op(std::string_view pattern, std::string_view op) { return matches_name(pattern, op); }

void check_module_pattern(std::string_view pattern) {
  check(pattern.find("..") == std::string_view::npos && !pattern.starts_with('.') &&
            !pattern.ends_with('.'),
        "precision rule: got the module '", pattern, "', expected names joined by dots");
}

struct PrecisionRules::Found {
  std::mutex mutex;
  using ByOp = std::map<std::string, const PrecisionRule*, std::less<>>;
  std::map<std::pair<uint32_t, OpClass>, ByOp> by_place;
};

PrecisionRules::PrecisionRules(std::vector<PrecisionRule> rules,
                               std::shared_ptr<const SimulatedFormats> formats)
    : rules_(std::move(rules)), formats_(std::move(formats)), found_(std::make_unique<Found>()) {
  const std::vector<OpInfo> ops = op_classes();
  for (const PrecisionRule& rule : rules_) {
    check_rule(rule, ops);
  }
}

PrecisionRules::~PrecisionRules() = default;

const PrecisionRule* PrecisionRules::find(const char* op, OpClass op_class, uint32_t module) const {
  std::lock_guard lock(found_->mutex);
  auto& rules = found_->by_place[{module, op_class}];
  const auto known = rules.find(std::string_view(op));
  if (known != rules.end()) {
    return known->second;
  }
  const std::string path = label_text(module);
  const PrecisionRule* last = nullptr;
  for (const PrecisionRule& rule : rules_) {
    const bool fits = (rule.op.empty() || matches_name(rule.op, op)) &&
                      (!rule.op_class || *rule.op_class == op_class) &&
                      matches_module(rule.module, path);
    last = fits ? &rule : last;
  }
  rules.emplace(op, last);
  return last;
}

const PrecisionRule* PrecisionRules::find_module(std::string_view path) const {
  const PrecisionRule* last = nullptr;
  for (const PrecisionRule& rule : rules_) {
    const bool whole = rule.op.empty() && !rule.op_class;
    last = whole && matches_module(rule.module, path) ? &rule : last;
  }
  return last;
}

void PrecisionRules::check_modules(const std::vector<std::string>& paths) const {
  for (const PrecisionRule& rule : rules_) {
    check_names_one(rule.module, paths);
  }
  if (formats_) {
    for (const AccumulationRule& rule : formats_->schemes().sums) {
      check_names_one(rule.module, paths);
    }
  }
}

}  // namespace binade
