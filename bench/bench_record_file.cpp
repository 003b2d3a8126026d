// Reads the files of binade bench --json, which may come from anywhere.
#include <bench/bench_record.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace binade::bench {
namespace {

using RecordFileJson = nlohmann::ordered_json;

constexpr size_t kMostRecordBytes = size_t{256} << 20;

// Returns a field of the wanted kind, or throws.
const RecordFileJson& field_of(const RecordFileJson& object, const char* key,
                               const std::string& name) {
  check(object.is_object() && object.contains(key), name, ": got no \"", key,
        "\", expected a file of binade bench --json");
  return object[key];
}

std::string text_field(const RecordFileJson& object, const char* key, const std::string& name) {
  const RecordFileJson& field = field_of(object, key, name);
  check(field.is_string(), name, ": \"", key, "\" is no text");
  return field.get<std::string>();
}

int64_t size_field(const RecordFileJson& object, const char* key, const std::string& name) {
  const RecordFileJson& field = field_of(object, key, name);
  check(field.is_number_integer() && field.get<double>() > 0 && field.get<double>() < 1e15, name,
        ": \"", key, "\" is no size");
  return field.get<int64_t>();
}

// Facts may be missing: a file needs no more than its samples.
std::string fact_text(const RecordFileJson& object, const char* key, const std::string& name) {
  return object.contains(key) ? text_field(object, key, name) : "";
}

int fact_count(const RecordFileJson& object, const char* key, const std::string& name) {
  if (!object.contains(key)) {
    return 0;
  }
  const int64_t count = size_field(object, key, name);
  check(count <= std::numeric_limits<int>::max(), name, ": \"", key, "\" is no size");
  return static_cast<int>(count);
}

MachineFacts parse_machine(const RecordFileJson& json, const std::string& name) {
  check(json.is_object(), name, ": \"machine\" is no object");
  MachineFacts facts;
  facts.commit = fact_text(json, "commit", name);
  facts.build = fact_text(json, "build", name);
  facts.compiler = fact_text(json, "compiler", name);
  facts.cpu = fact_text(json, "cpu", name);
  facts.kernel = fact_text(json, "kernel", name);
  facts.governor = fact_text(json, "governor", name);
  facts.isa = fact_text(json, "isa", name);
  facts.device = fact_text(json, "device", name);
  facts.cores = fact_count(json, "cores", name);
  facts.threads = fact_count(json, "threads", name);
  return facts;
}

CaseRecord parse_case(const RecordFileJson& json, const std::string& name) {
  CaseRecord record;
  record.settings.kernel = text_field(json, "kernel", name);
  record.settings.rows = size_field(json, "rows", name);
  record.settings.cols = size_field(json, "cols", name);
  record.settings.dtype = parse_floating(text_field(json, "dtype", name), name.c_str());
  record.settings.provider = text_field(json, "provider", name);
  const std::string device = text_field(json, "device", name);
  const auto kind = device.starts_with("cuda")       ? Device::kCuda
                    : device.starts_with("emulated") ? Device::kEmulated
                                                     : Device::kCpu;
  record.settings.device = {kind, 0};
  const RecordFileJson& samples = field_of(json, "samples_seconds", name);
  check(samples.is_array() && !samples.empty(), name,
        ": \"samples_seconds\" is no list of numbers");
  for (const RecordFileJson& sample : samples) {
    check(sample.is_number() && sample.get<double>() > 0 && std::isfinite(sample.get<double>()),
          name, ": \"samples_seconds\" has what is no positive number");
    record.samples.push_back(sample.get<double>());
  }
  return record;
}

}  // namespace

DType parse_floating(const std::string& name, const char* flag) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (name == to_string(static_cast<DType>(i)) && is_floating(static_cast<DType>(i))) {
      return static_cast<DType>(i);
    }
  }
  fail(flag, ": got '", name, "', expected f64, f32, f16 or bf16");
}

BenchRecord parse_bench_record(const std::string& name, std::string_view json) {
  check(json.size() <= kMostRecordBytes, name, ": got ", json.size(), " bytes, expected at most ",
        kMostRecordBytes);
  const RecordFileJson root = RecordFileJson::parse(json.begin(), json.end(), nullptr, false);
  check(!root.is_discarded(), name, ": got no JSON, expected a file of binade bench --json");
  const RecordFileJson& version = field_of(root, "binade_bench", name);
  check(version.is_number_integer() && version == kRecordVersion, name,
        ": got another version of the format, expected ", kRecordVersion);
  const RecordFileJson& cases = field_of(root, "cases", name);
  check(cases.is_array(), name, ": \"cases\" is no list");
  BenchRecord record;
  record.cache = fact_text(root, "cache", name);
  if (root.contains("machine")) {
    record.machine = parse_machine(root["machine"], name);
  }
  for (const RecordFileJson& one : cases) {
    check(one.is_object(), name, ": \"cases\" has what is no object");
    if (!one.contains("error")) {
      record.cases.push_back(parse_case(one, name));
    }
  }
  return record;
}

}  // namespace binade::bench
