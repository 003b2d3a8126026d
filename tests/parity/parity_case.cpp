#include <tests/kernels/support/test_device.h>
#include <tests/parity/parity_case.h>

#include <binade/core/tensor/create.h>

#include <cmath>
#include <cstring>
#include <limits>

#include <tests/op_table/compare.h>

namespace binade::parity {
namespace {

std::map<std::string, std::string> keys(const Json& object) {
  std::map<std::string, std::string> result;
  for (const auto& [name, key] : object.items()) {
    if (!key.is_null()) {
      result[name] = key.get<std::string>();
    }
  }
  return result;
}

Case parse_case(const Json& json) {
  Case c;
  c.name = json.at("name");
  c.op = json.at("op");
  c.attrs = json.at("attrs");
  c.inputs = keys(json.at("inputs"));
  c.requires_grad = json.at("requires_grad").get<std::vector<std::string>>();
  c.outputs = keys(json.at("outputs"));
  c.grad_outputs = keys(json.at("grad_outputs"));
  c.grads = keys(json.at("grads"));
  c.layout = json.at("layout").get<std::map<std::string, Json>>();
  c.expects_error = json.at("expect").is_object();
  c.len = json.value("len", 1.0);
  return c;
}

template <class T>
std::vector<double> widened(const std::vector<std::byte>& bytes) {
  std::vector<double> values(bytes.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(value);
  }
  return values;
}

}  // namespace

CaseFile::CaseFile(const std::string& path) : file_(SafetensorsFile::open(path)) {
  const auto& metadata = file_.metadata();
  const auto format = metadata.find("format");
  check(format != metadata.end() && format->second == "binade-parity-1" &&
            metadata.count("family") && metadata.count("cases"),
        path, ": not a file of parity cases (format binade-parity-1)");
  family_ = metadata.at("family");
  try {
    for (const Json& json : Json::parse(metadata.at("cases"))) {
      cases_.push_back(parse_case(json));
    }
  } catch (const Json::exception& error) {
    fail(path, ": the list of cases cannot be read: ", error.what());
  }
}

Array CaseFile::values(const std::string& key) const {
  const TensorEntry& entry = file_.at(key);
  const std::vector<std::byte> bytes = file_.read(entry);
  switch (file_.dtype_of(entry)) {
    case DType::f64: return {entry.sizes, widened<double>(bytes)};
    case DType::f32: return {entry.sizes, widened<float>(bytes)};
    case DType::i64: return {entry.sizes, widened<int64_t>(bytes)};
    case DType::boolean: return {entry.sizes, widened<uint8_t>(bytes)};
    default:
      fail(file_.path(), ": ", key, " has type ", entry.type, ", expected F64, F32, I64 or BOOL");
  }
}

DType CaseFile::stored_dtype(const std::string& key) const { return file_.dtype_of(file_.at(key)); }

Tensor CaseFile::tensor(const std::string& key, DType floating) const {
  const DType stored = stored_dtype(key);
  const Array x = values(key);
  return from_values(x.values, x.sizes, is_floating(stored) ? floating : stored,
                     kernels::test_device());
}

void Checker::fail(const std::string& what) {
  if (failure_.empty()) {
    failure_ = what;
  }
}

void Checker::compare(const std::string& name, const Array& got, const Array& want,
                      const std::function<double(double)>& tolerance) {
  if (!(got.sizes == want.sizes)) {
    fail(text(name, " has sizes ", got.sizes, ", expected ", want.sizes));
    return;
  }
  for (size_t i = 0; i < want.values.size() && failure_.empty(); ++i) {
    const double allowed = tolerance(want.values[i]);
    if (!op_table::close(got.values[i], want.values[i], allowed)) {
      fail(text(name, "[", i, "] is ", got.values[i], ", expected ", want.values[i], " within ",
                allowed));
    }
  }
}

void Checker::expect(const std::string& name, const Tensor& got, const Array& want, double c,
                     double fallback) {
  if (!is_floating(got.dtype())) {
    expect_exact(name, got, want);
    return;
  }
  const double largest = op_table::largest_magnitude(want);
  const double allowed =
      op_table::sum_tolerance(got.dtype(), len_, largest > 0 ? largest : fallback) * c / 8;
  // Values beyond the range of the dtype are infinities.
  const Array held = op_table::map(want, [dtype = got.dtype()](double value) {
    const double rounded = op_table::round_to(dtype, value);
    return std::isinf(rounded) ? rounded : value;
  });
  compare(name, op_table::to_array(got), held, [allowed](double) { return allowed; });
}

void Checker::expect_on_the_whole(const std::string& name, const Tensor& got, const Array& want,
                                  double c, double more) {
  const Array values = op_table::to_array(got);
  double squares = 0;
  for (size_t i = 0; i < want.values.size() && values.sizes == want.sizes; ++i) {
    const double difference = values.values[i] - want.values[i];
    squares += difference * difference;
  }
  const Array mean{{}, {std::sqrt(squares / double(std::max(want.values.size(), size_t{1})))}};
  const double allowed =
      op_table::sum_tolerance(got.dtype(), len_, op_table::largest_magnitude(want)) * c / 8 + more;
  if (!(values.sizes == want.sizes)) {
    fail(text(name, " has sizes ", values.sizes, ", expected ", want.sizes));
  }
  compare(name + ", root mean square of the differences", mean, {{}, {0}},
          [allowed](double) { return allowed; });
}

void Checker::expect_exact(const std::string& name, const Tensor& got, const Array& want) {
  compare(name, op_table::to_array(got), op_table::round_to(got.dtype(), want),
          [](double) { return 0.0; });
}

void Checker::expect_relative(const std::string& name, const Array& got, const Array& want,
                              double relative) {
  compare(name, got, want, [relative](double value) { return relative * std::fabs(value); });
}

Tensor Call::optional(const std::string& name) const {
  const auto found = inputs.find(name);
  return found == inputs.end() ? Tensor() : found->second;
}

double number(const Json& value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (value.is_string()) {
    return value == "-inf" ? -kInfinity : value == "inf" ? kInfinity : throw NotCovered{value};
  }
  return value.get<double>();
}

Dims dims(const Json& list) {
  Dims result;
  for (const Json& value : list) {
    result.push_back(value.get<int64_t>());
  }
  return result;
}

}  // namespace binade::parity
