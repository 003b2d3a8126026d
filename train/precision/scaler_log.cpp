#include <binade/core/io/json_text.h>
#include <binade/train/precision/scaler_log.h>
#include <binade/train/report/json_numbers_internal.h>
#include <binade/train/run_directory.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

namespace binade::train {
namespace {

using nlohmann::json;

constexpr int64_t kLinesAtOnce = 256;

std::string options_line(const optim::LossScalerOptions& o) {
  return json{{"scaler",
               {{"init_scale", o.init_scale},
                {"growth_factor", o.growth_factor},
                {"backoff_factor", o.backoff_factor},
                {"growth_interval", o.growth_interval},
                {"hysteresis", o.hysteresis},
                {"min_scale", o.min_scale},
                {"max_scale", o.max_scale},
                {"power_of_two", o.power_of_two}}}}
             .dump() +
         "\n";
}

optim::LossScalerOptions options_of(const json& j) {
  optim::LossScalerOptions o{.init_scale = j.at("init_scale"),
                             .growth_factor = j.at("growth_factor"),
                             .backoff_factor = j.at("backoff_factor"),
                             .growth_interval = whole_number(j.at("growth_interval")),
                             .hysteresis = whole_number(j.at("hysteresis")),
                             .min_scale = j.at("min_scale"),
                             .max_scale = j.at("max_scale"),
                             .power_of_two = j.at("power_of_two")};
  (void)optim::ScalerState(o);  // throws if they are not valid
  return o;
}

std::optional<GradientSizes> sizes_of(const json& line) {
  if (!line.contains("largest")) {
    return std::nullopt;
  }
  const std::string stored = line.at("stored");
  check(stored == "f16" || stored == "bf16" || stored == "f32" || stored == "f64",
        "got gradients stored in ", json_quoted_short(stored));
  GradientSizes sizes{.stored = stored == "f16"    ? DType::f16
                                : stored == "bf16" ? DType::bf16
                                : stored == "f32"  ? DType::f32
                                                   : DType::f64,
                      .largest = line.at("largest"),
                      .smallest = line.at("smallest"),
                      .elements = whole_number(line.at("elements")),
                      .zeros = whole_number(line.at("zeros")),
                      .chosen_zeros = whole_number(line.value("chosen_zeros", json(0))),
                      .least_exponent = whole_number<int>(line.at("least_exponent"))};
  check(line.at("exponents").is_array(), "got exponents that are no list");
  for (const json& count : line.at("exponents")) {
    sizes.exponents.push_back(whole_number(count));
  }
  check(sizes.largest >= 0 && sizes.smallest >= 0, "got a negative magnitude");
  check(sizes.chosen_zeros >= 0 && sizes.chosen_zeros <= sizes.zeros, "got ", sizes.chosen_zeros,
        " chosen zeros among ", sizes.zeros);
  return sizes;
}

ScalerRecord record_of(const json& line) {
  const std::string outcome = line.at("outcome");
  check(outcome == "applied" || outcome == "overflow", "got the outcome ",
        json_quoted_short(outcome));
  ScalerRecord record{.step = whole_number(line.at("step")),
                      .phase = line.value("phase", ""),
                      .scale = line.at("scale"),
                      .overflow = outcome == "overflow",
                      .bad = line.value("bad", ""),
                      .cause = line.value("cause", ""),
                      .gradients = sizes_of(line)};
  check(record.scale > 0, "got a scale of ", record.scale);
  return record;
}

}  // namespace

std::string to_json(const ScalerRecord& r) {
  json line{{"step", r.step}, {"scale", r.scale}, {"outcome", r.overflow ? "overflow" : "applied"}};
  const auto add_text = [&line](const char* name, const std::string& value) {
    if (!value.empty()) {
      line[name] = value;
    }
  };
  add_text("phase", r.phase);
  add_text("bad", r.bad);
  add_text("cause", r.cause);
  if (r.gradients) {
    line["stored"] = text(r.gradients->stored);
    line["largest"] = r.gradients->largest;
    line["smallest"] = r.gradients->smallest;
    line["elements"] = r.gradients->elements;
    line["zeros"] = r.gradients->zeros;
    line["chosen_zeros"] = r.gradients->chosen_zeros;
    line["least_exponent"] = r.gradients->least_exponent;
    line["exponents"] = r.gradients->exponents;
  }
  return line.dump(-1, ' ', false, json::error_handler_t::replace);
}

ScalerLogFile::ScalerLogFile(std::string path, const optim::LossScalerOptions& options, bool append,
                             FileSystem& files)
    : path_(std::move(path)), files_(files) {
  if (append) {  // with the first record: a run that ends before it changes nothing
    lines_ = options_line(options);
  } else {
    append_to_file(path_, options_line(options), files_, true);
  }
}

ScalerLogFile::~ScalerLogFile() {
  try {
    flush();
  } catch (const std::exception&) {  // a destructor has nobody to tell
    lines_.clear();
  }
}

void ScalerLogFile::add(const ScalerRecord& record) {
  lines_ += to_json(record) + "\n";
  if (++count_ % kLinesAtOnce == 0) {
    flush();
  }
}

void ScalerLogFile::flush() {
  if (count_ > 0 && !lines_.empty()) {
    append_to_file(path_, lines_, files_, false);
    lines_.clear();
  }
}

ScalerLog read_scaler_log(const std::string& file, const std::string& phase, FileSystem& files) {
  const std::vector<std::byte> bytes = read_file(file, uint64_t{1} << 32, files);
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  ScalerLog log;
  std::set<std::string> phases;
  int64_t number = 0;
  bool described = false;
  for (size_t end; (end = rest.find('\n')) != std::string_view::npos; rest.remove_prefix(end + 1)) {
    ++number;
    try {
      const auto line = json::parse(rest.substr(0, end));
      if (line.contains("scaler")) {
        log.options = options_of(line.at("scaler"));
        described = true;
        continue;
      }
      ScalerRecord record = record_of(line);
      phases.insert(record.phase);
      if (phase.empty() || record.phase == phase) {
        const ScalerRecord* last = log.records.empty() ? nullptr : &log.records.back();
        const bool again = last && record.phase == last->phase && record.step <= last->step;
        check(!again, "got step ", record.step, " a second time");
        log.records.push_back(std::move(record));
      }
    } catch (const std::exception& error) {
      fail(file, ": line ", number,
           " is not a record of a loss scaler: ", json_quoted_short(error.what()));
    }
  }
  check(described && !log.records.empty(), file, ": got ", described ? "no step" : "no scaler",
        ", expected the log of a loss scaler (RUN/scaler.jsonl)");
  check(!phase.empty() || phases.size() == 1, file, ": got the phases ",
        list_names({phases.begin(), phases.end()}), ", expected the name of one of them");
  return log;
}

void keep_scaler_lines(const std::string& file, int64_t first_step, FileSystem& files) {
  keep_lines(
      file,
      [first_step](const std::string& text) {
        const auto line = json::parse(text, nullptr, false);
        return line.is_object() && (line.contains("scaler") ||
                                    (line.contains("step") && line["step"].is_number_integer() &&
                                     line["step"].get<int64_t>() < first_step));
      },
      files);
}

}  // namespace binade::train
