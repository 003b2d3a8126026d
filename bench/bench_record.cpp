#include <bench/bench_record.h>
#include <binade/core/io/json_text.h>

#include <cstdio>
#include <nlohmann/json.hpp>

namespace binade::bench {
namespace {

using RecordJson = nlohmann::ordered_json;

std::string with_digits(double value, const char* format) {
  char shown[64];
  std::snprintf(shown, sizeof shown, format, value);
  return shown;
}

RecordJson machine_json(const MachineFacts& m) {
  return {{"commit", m.commit},     {"build", m.build},
          {"compiler", m.compiler}, {"cpu", m.cpu},
          {"cores", m.cores},       {"threads", m.threads},
          {"isa", m.isa},           {"megahertz", m.megahertz},
          {"governor", m.governor}, {"last_cache_bytes", m.last_cache},
          {"kernel", m.kernel},     {"device", m.device},
          {"load", m.load},         {"date", m.date}};
}

RecordJson case_json(const CaseRecord& c) {
  RecordJson json{{"kernel", c.settings.kernel},
                  {"rows", c.settings.rows},
                  {"cols", c.settings.cols},
                  {"dtype", to_string(c.settings.dtype)},
                  {"device", to_string(c.settings.device)},
                  {"provider", c.settings.provider}};
  if (!c.error.empty()) {
    json["error"] = c.error;
    return json;
  }
  const MedianInterval interval = median_interval(c.samples);
  json["checked_before_and_after"] = c.checked;
  json["bytes"] = c.bytes;
  json["flops"] = c.flops;
  json["calls_per_sample"] = c.calls;
  json["median_seconds"] = median(c.samples);
  json["low_seconds"] = interval.low;
  json["high_seconds"] = interval.high;
  json["coverage"] = interval.coverage;
  json["copy_bytes_per_second"] = c.copy_rate;
  json["ceiling_flops_per_second"] = c.flop_rate;
  json["samples_seconds"] = c.samples;
  return json;
}

}  // namespace

std::string case_name(const CaseSettings& s) {
  return text(s.kernel, " ", s.rows, "x", s.cols, " ", s.dtype, " on ", s.device,
              s.provider.empty() ? "" : ", ", s.provider);
}

std::string line_of(const CaseRecord& c) {
  if (!c.error.empty()) {
    return text(case_name(c.settings), ": ", c.error);
  }
  const double seconds = median(c.samples);
  const MedianInterval interval = median_interval(c.samples);
  std::string line = case_name(c.settings) + ": " + with_digits(seconds * 1e6, "%.2f us") + " (" +
                     with_digits(interval.low * 1e6, "%.2f to ") +
                     with_digits(interval.high * 1e6, "%.2f at ") +
                     with_digits(100 * interval.coverage, "%.0f%%), ") +
                     with_digits(c.bytes / seconds * 1e-9, "%.1f GB/s");
  if (c.copy_rate > 0) {
    line += with_digits(100 * c.bytes / seconds / c.copy_rate, " = %.0f%% of a copy");
  }
  if (c.flops > 0) {
    line += with_digits(c.flops / seconds * 1e-9, ", %.1f GFLOP/s");
    line += c.flop_rate > 0
                ? with_digits(100 * c.flops / seconds / c.flop_rate, " = %.0f%% of the ceiling")
                : "";
  }
  return line + "; right before and after (" + c.checked + ")";
}

std::string json_of(const MachineFacts& machine) {
  return machine_json(machine).dump(-1, ' ', false, RecordJson::error_handler_t::replace);
}

std::string json_of(const BenchRecord& record) {
  RecordJson cases = RecordJson::array();
  for (const CaseRecord& one : record.cases) {
    cases.push_back(case_json(one));
  }
  return RecordJson{{"binade_bench", kRecordVersion},
                    {"machine", machine_json(record.machine)},
                    {"cache", record.cache},
                    {"cases", cases}}
             .dump(1, ' ', false, RecordJson::error_handler_t::replace) +
         "\n";
}

}  // namespace binade::bench
