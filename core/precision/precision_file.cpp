#include <binade/core/precision/precision_rules.h>
#include <binade/core/precision/simulated_formats.h>
#include <binade/kernels/base/error.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace binade {
namespace {

using nlohmann::json;

DType parse_dtype(const std::string& name) {
  if (name == "fp32" || name == "f32") {
    return DType::f32;
  }
  if (name == "fp16" || name == "f16") {
    return DType::f16;
  }
  check(name == "bf16", "dtype: got '", name, "', expected fp32, fp16 or bf16");
  return DType::bf16;
}

std::string string_of(const json& value, const std::string& key) {
  check(value.is_string(), key, ": got ", value.dump(), ", expected a string");
  return value.get<std::string>();
}

PrecisionRule rule_of(const json& entry) {
  check(entry.is_object(), "got ", entry.dump(),
        ", expected an object with op, class, module and dtype");
  PrecisionRule rule;
  bool has_dtype = false;
  for (const auto& [key, value] : entry.items()) {
    if (key == "op") {
      rule.op = string_of(value, key);
    } else if (key == "class") {
      rule.op_class = parse_op_class(string_of(value, key));
    } else if (key == "module") {
      rule.module = string_of(value, key);
    } else if (key == "dtype") {
      rule.dtype = parse_dtype(string_of(value, key));
      has_dtype = true;
    } else {
      fail("got the key '", key, "', expected op, class, module and dtype");
    }
  }
  check(has_dtype, "has no dtype; expected fp32, fp16 or bf16");
  return rule;
}

FormatSchemes formats_of_json(const json& entry) {
  check(entry.is_object(), "formats: got ", entry.dump(),
        ", expected an object with weights, activations and gradients");
  FormatSchemes schemes;
  for (const auto& [key, value] : entry.items()) {
    check(key == "weights" || key == "activations" || key == "gradients", "formats: got the key '",
          key, "', expected weights, activations and gradients");
    (key == "weights"       ? schemes.weights
     : key == "activations" ? schemes.activations
                            : schemes.gradients) = format_scheme(string_of(value, key));
  }
  return schemes;
}

json json_of(const FormatSchemes& schemes) {
  json out = json::object();
  const auto add = [&](const char* what, const std::optional<FormatScheme>& scheme) {
    if (scheme) {
      out[what] = to_string(*scheme);
    }
  };
  add("weights", schemes.weights);
  add("activations", schemes.activations);
  add("gradients", schemes.gradients);
  return out;
}

Precision with_all(const json& whole, Precision precision) {
  check(whole.is_object(), "expected an object with store and overrides");
  for (const auto& [key, value] : whole.items()) {
    if (key == "store") {
      precision = precision.with(parse_store(string_of(value, key)));
      continue;
    }
    if (key == "formats") {
      precision = with_formats(precision, formats_of_json(value));
      continue;
    }
    check(key == "overrides" && value.is_array(), "got the key '", key,
          "', expected store, formats, or overrides with an array");
    for (size_t i = 0; i < value.size(); ++i) {
      try {
        precision = precision.with({rule_of(value[i])});
      } catch (Error& error) {
        fail("overrides[", i, "]: ", error.what());
      }
    }
  }
  return precision;
}

}  // namespace

Precision read_precision(const std::string& path, const Precision& base) {
  std::ifstream file(path);
  std::stringstream content;
  content << file.rdbuf();
  check(file.good(), path, ": cannot be read, expected a JSON file of precision overrides");
  try {
    return with_all(json::parse(content.str()), base);
  } catch (const json::exception& error) {
    fail(path, ": ", error.what());
  } catch (const Error& error) {
    fail(path, ": ", error.what());
  }
}

std::string to_json(const Precision& precision) {
  constexpr const char* kPolicies[] = {"fp32", "autocast-", "mixed-", "half-"};
  const auto file_name = [](DType dtype) {
    return dtype == DType::f16 ? "fp16" : dtype == DType::bf16 ? "bf16" : "fp32";
  };
  json whole{
      {"policy", std::string(kPolicies[precision.policy]) +
                     (precision.policy == Precision::kFull ? "" : file_name(precision.low))}};
  if (precision.store != Store::by_policy) {
    whole["store"] = to_string(precision.store);
  }
  for (const PrecisionRule& rule :
       precision.rules ? precision.rules->list() : std::vector<PrecisionRule>()) {
    json entry{{"dtype", file_name(rule.dtype)}};
    if (!rule.op.empty()) {
      entry["op"] = rule.op;
    }
    if (rule.op_class) {
      entry["class"] = to_string(*rule.op_class);
    }
    if (!rule.module.empty()) {
      entry["module"] = rule.module;
    }
    whole["overrides"].push_back(std::move(entry));
  }
  if (const FormatSchemes formats = formats_of(precision); formats.any()) {
    whole["formats"] = json_of(formats);
  }
  return whole.dump();
}

Precision precision_of_json(const std::string& text) {
  try {
    json whole = json::parse(text);
    const Precision base = parse_precision(string_of(whole.at("policy"), "policy"));
    whole.erase("policy");
    return with_all(whole, base);
  } catch (const json::exception& error) {
    fail("precision: got text that is no policy: ", error.what());
  }
}

}  // namespace binade
