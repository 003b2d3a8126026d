#include <binade/core/io/json_text.h>
#include <binade/core/observe/text_table_internal.h>
#include <binade/train/precision/shadow_report.h>
#include <binade/train/run_directory.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

namespace binade::train {
namespace {

using nlohmann::json;

constexpr double kResolved = 10;  // times the noise

// JSON has no numbers that are not finite: they become null.
json number_json(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

double number_of_json(const json& j, const char* name) {
  const json& value = j.at(name);
  return value.is_null() ? std::nan("") : value.get<double>();
}

// A whole number, from 0 to 2^53.
int64_t count_of_json(const json& j, const char* name) {
  const json& value = j.at(name);
  check(value.is_number_integer() && value.get<double>() >= 0 && value.get<double>() <= 0x1p53,
        "got ", name, " that is no count");
  return value.get<int64_t>();
}

json errors_json(const ShadowErrors& e) {
  return {{"elements", e.elements},
          {"not_finite", e.not_finite},
          {"introduced", number_json(e.introduced)},
          {"inherited", number_json(e.inherited)},
          {"total", number_json(e.total)},
          {"amplification", number_json(e.amplification)},
          {"ulp", number_json(e.ulp)},
          {"worst_ulp", number_json(e.worst_ulp)},
          {"bias", number_json(e.bias)},
          {"cosine", number_json(e.cosine)}};
}

ShadowErrors errors_of(const json& j) {
  return {.elements = count_of_json(j, "elements"),
          .not_finite = count_of_json(j, "not_finite"),
          .introduced = number_of_json(j, "introduced"),
          .inherited = number_of_json(j, "inherited"),
          .total = number_of_json(j, "total"),
          .amplification = number_of_json(j, "amplification"),
          .ulp = number_of_json(j, "ulp"),
          .worst_ulp = number_of_json(j, "worst_ulp"),
          .bias = number_of_json(j, "bias"),
          .cosine = number_of_json(j, "cosine")};
}

ShadowStep step_of(const json& j) {
  ShadowStep step{
      .step = count_of_json(j, "step"),
      .scale = number_of_json(j, "scale"),
      .loss = number_of_json(j, "loss"),
      .exact = number_of_json(j, "exact"),
      .noise = number_of_json(j, "noise"),
      .explained = number_of_json(j, "explained"),
      .points = static_cast<int>(std::min<int64_t>(count_of_json(j, "points"), 1 << 20)),
      .text = j.at("text"),
      .rows = {},
      .weights = {}};
  for (const json& row : j.at("rows")) {
    step.rows.push_back({.module = row.at("module"),
                         .op = row.at("op"),
                         .stored = row.at("stored"),
                         .calls = count_of_json(row, "calls"),
                         .forward = errors_of(row.at("forward")),
                         .backward = errors_of(row.at("backward")),
                         .accumulation = number_of_json(row, "accumulation"),
                         .budget = number_of_json(row, "budget")});
  }
  for (const json& weight : j.at("weights")) {
    step.weights.push_back({.name = weight.at("name"),
                            .rounding = number_of_json(weight, "rounding"),
                            .budget = number_of_json(weight, "budget"),
                            .gradient_error = number_of_json(weight, "gradient_error"),
                            .gradient_cosine = number_of_json(weight, "gradient_cosine")});
  }
  return step;
}

std::string share_text(double part, double whole) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%+.3g%%", 100 * part / whole);
  return whole != 0 && std::isfinite(part / whole) ? buffer : "-";
}

std::string brief(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.3g", value);
  return buffer;
}

}  // namespace

bool ShadowStep::resolved() const {
  return std::isfinite(difference()) && std::abs(difference()) > kResolved * noise;
}

double ShadowStep::residual() const {
  return resolved() ? std::abs(difference() - explained) / std::abs(difference())
                    : std::numeric_limits<double>::quiet_NaN();
}

std::string to_json(const ShadowStep& s) {
  json rows = json::array(), weights = json::array();
  for (const ShadowRow& row : s.rows) {
    rows.push_back({{"module", row.module},
                    {"op", row.op},
                    {"stored", row.stored},
                    {"calls", row.calls},
                    {"forward", errors_json(row.forward)},
                    {"backward", errors_json(row.backward)},
                    {"accumulation", number_json(row.accumulation)},
                    {"budget", number_json(row.budget)}});
  }
  for (const ShadowWeight& weight : s.weights) {
    weights.push_back({{"name", weight.name},
                       {"rounding", number_json(weight.rounding)},
                       {"budget", number_json(weight.budget)},
                       {"gradient_error", number_json(weight.gradient_error)},
                       {"gradient_cosine", number_json(weight.gradient_cosine)}});
  }
  const json line{{"step", s.step},
                  {"scale", number_json(s.scale)},
                  {"loss", number_json(s.loss)},
                  {"exact", number_json(s.exact)},
                  {"noise", number_json(s.noise)},
                  {"explained", number_json(s.explained)},
                  {"points", s.points},
                  {"text", s.text},
                  {"rows", rows},
                  {"weights", weights}};
  return line.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::vector<ShadowStep> read_shadow(const std::string& file, FileSystem& files) {
  const std::vector<std::byte> bytes = read_file(file, uint64_t{1} << 32, files);
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<ShadowStep> steps;
  int64_t number = 0;
  for (size_t end; (end = rest.find('\n')) != std::string_view::npos; rest.remove_prefix(end + 1)) {
    ++number;
    try {
      steps.push_back(step_of(json::parse(rest.substr(0, end))));
    } catch (const std::exception& error) {
      fail(file, ": line ", number,
           " is not a step of a shadow: ", json_quoted_short(error.what()));
    }
  }
  check(!steps.empty(), file, ": got no step, expected the file of a shadow (RUN/shadow.jsonl)");
  return steps;
}

void keep_shadow_lines(const std::string& file, int64_t first_step, FileSystem& files) {
  keep_lines(
      file,
      [first_step](const std::string& text) {
        const auto line = json::parse(text, nullptr, false);
        return line.is_object() && line.contains("step") && line["step"].is_number_integer() &&
               line["step"].get<int64_t>() < first_step;
      },
      files);
}

std::vector<ShadowModule> modules_of(const ShadowStep& step) {
  std::vector<ShadowModule> modules;
  const auto of = [&modules](const std::string& name) -> ShadowModule& {
    const auto found = std::find_if(modules.begin(), modules.end(),
                                    [&](const ShadowModule& m) { return m.module == name; });
    return found != modules.end() ? *found : modules.emplace_back(ShadowModule{.module = name});
  };
  for (const ShadowRow& row : step.rows) {
    ShadowModule& module = of(row.module);
    module.budget += row.budget;
    module.largest = std::max(module.largest, row.forward.introduced);
  }
  for (const ShadowWeight& weight : step.weights) {
    const size_t dot = weight.name.rfind('.');
    of(dot == std::string::npos ? "" : weight.name.substr(0, dot)).budget += weight.budget;
  }
  std::stable_sort(modules.begin(), modules.end(), [](const auto& a, const auto& b) {
    return std::abs(a.budget) > std::abs(b.budget);
  });
  return modules;
}

std::string to_text(const ShadowStep& s) {
  std::string out = text("step ", s.step, ": loss ", s.loss, ", in f64 ", s.exact, ", difference ",
                         s.difference(), ", noise of f64 ", s.noise, "\n");
  if (!s.text.empty()) {
    return out + s.text + "\n";
  }
  out += s.resolved() ? text("the budget explains ", s.explained, ", residual ",
                             brief(100 * s.residual()), "% (", s.points, " runs in f64)\n")
                      : "not resolved: the losses differ by less than ten times the noise\n";
  std::vector<std::vector<std::string>> table{{"module", "op", "stored", "introduced", "inherited",
                                               "grows", "ulp", "bias", "backward", "cosine",
                                               "of the loss", "share"}};
  for (const ShadowRow& row : s.rows) {
    const bool back = row.backward.elements > 0;
    table.push_back({row.module, row.op, row.stored, brief(row.forward.introduced),
                     brief(row.forward.inherited), brief(row.forward.amplification),
                     brief(row.forward.ulp), brief(row.forward.bias),
                     back ? brief(row.backward.introduced) : "",
                     back ? brief(row.backward.cosine) : "", s.resolved() ? brief(row.budget) : "",
                     s.resolved() ? share_text(row.budget, s.difference()) : ""});
  }
  std::vector<std::vector<std::string>> weights{
      {"weight", "rounding", "of the loss", "share", "gradient error", "cosine"}};
  for (const ShadowWeight& weight : s.weights) {
    weights.push_back({weight.name, brief(weight.rounding),
                       s.resolved() ? brief(weight.budget) : "",
                       s.resolved() ? share_text(weight.budget, s.difference()) : "",
                       brief(weight.gradient_error), brief(weight.gradient_cosine)});
  }
  return out + "\n" + text_table(table) + "\n" + text_table(weights);
}

}  // namespace binade::train
