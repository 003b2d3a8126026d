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

// An entry of "overrides": in which dtype ops run, how they sum, or both.
struct Override {
  PrecisionRule rule = {};
  bool has_dtype = false;
  std::optional<Accumulation> sum = {};
};

Override override_of(const json& entry) {
  check(entry.is_object(), "got ", entry.dump(),
        ", expected an object with op, class, module, and dtype or sums");
  Override all;
  PrecisionRule& rule = all.rule;
  for (const auto& [key, value] : entry.items()) {
    if (key == "op") {
      rule.op = string_of(value, key);
    } else if (key == "class") {
      rule.op_class = parse_op_class(string_of(value, key));
    } else if (key == "module") {
      rule.module = string_of(value, key);
    } else if (key == "dtype") {
      rule.dtype = parse_dtype(string_of(value, key));
      all.has_dtype = true;
    } else if (key == "sums") {
      all.sum = accumulation(string_of(value, key));
    } else {
      fail("got the key '", key, "', expected op, class, module, dtype and sums");
    }
  }
  check(all.has_dtype || all.sum, "has no dtype; expected fp32, fp16 or bf16, or sums");
  check(!all.sum || !rule.op_class, "got sums of a class, expected those of an op");
  return all;
}

Precision with_override(const Precision& precision, const json& entry) {
  const Override all = override_of(entry);
  const Precision out = all.has_dtype ? precision.with({all.rule}) : precision;
  if (!all.sum) {
    return out;
  }
  FormatSchemes schemes = formats_of(out);
  schemes.sums.push_back({.op = all.rule.op, .module = all.rule.module, .sum = *all.sum});
  return with_formats(out, schemes);
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
      FormatSchemes schemes = formats_of_json(value);
      schemes.sums = formats_of(precision).sums;
      precision = with_formats(precision, schemes);
      continue;
    }
    check(key == "overrides" && value.is_array(), "got the key '", key,
          "', expected store, formats, or overrides with an array");
    for (size_t i = 0; i < value.size(); ++i) {
      try {
        precision = with_override(precision, value[i]);
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
  const FormatSchemes formats = formats_of(precision);
  for (const AccumulationRule& rule : formats.sums) {
    json entry{{"sums", to_string(rule.sum)}};
    if (!rule.op.empty()) {
      entry["op"] = rule.op;
    }
    if (!rule.module.empty()) {
      entry["module"] = rule.module;
    }
    whole["overrides"].push_back(std::move(entry));
  }
  if (json given = json_of(formats); !given.empty()) {
    whole["formats"] = std::move(given);
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
