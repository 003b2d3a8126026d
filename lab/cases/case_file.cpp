#include <binade/core/io/json_scan_internal.h>
#include <binade/lab/cases/case_file.h>
#include <binade/lab/cases/case_internal.h>
#include <binade/lab/cases/host_function_internal.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace binade::lab {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  check(in.good() && !std::filesystem::is_directory(path), "kernel: cannot read ", path);
  return out.str();
}

// What a case file says.
struct CaseText {
  Case made = {};
  std::vector<std::string> shapes = {};
  std::string reference = {}, flops = "0";
  std::map<std::string, FillOptions> ranges = {};
  uint64_t units = 16;
};

class CaseReader {
 public:
  CaseReader(const std::string& path, std::string_view json) : scan_(path, json) {}

  CaseText read() {
    expect(JsonToken::begin_object, "an object");
    for (JsonToken token = scan_.next(); token == JsonToken::key; token = scan_.next()) {
      read_member(std::string(scan_.string()));
    }
    return std::move(text_);
  }

 private:
  void expect(JsonToken wanted, const char* what) {
    if (scan_.next() != wanted) {
      scan_.fail_here(text("expected ", what));
    }
  }
  std::string string() {
    expect(JsonToken::string, "a string");
    return std::string(scan_.string());
  }
  double number(const std::string& digits) {
    char* end = nullptr;
    const double value = std::strtod(digits.c_str(), &end);
    if (end == digits.c_str() || *end != '\0') {
      scan_.fail_here(text("expected a number in a string, got ", digits));
    }
    return value;
  }
  std::vector<std::string> strings() {
    expect(JsonToken::begin_array, "an array of strings");
    std::vector<std::string> list;
    for (JsonToken token = scan_.next(); token != JsonToken::end_array; token = scan_.next()) {
      if (token != JsonToken::string) {
        scan_.fail_here("expected a string");
      }
      list.emplace_back(scan_.string());
    }
    return list;
  }
  // Calls f(key) for the members of each object of an array.
  template <class Begin, class F>
  void objects(Begin begin, F f) {
    expect(JsonToken::begin_array, "an array of objects");
    for (JsonToken token = scan_.next(); token != JsonToken::end_array; token = scan_.next()) {
      if (token != JsonToken::begin_object) {
        scan_.fail_here("expected an object");
      }
      begin();
      for (JsonToken key = scan_.next(); key == JsonToken::key; key = scan_.next()) {
        f(std::string(scan_.string()));
      }
    }
  }

  void read_member(const std::string& key) {
    Case& made = text_.made;
    if (key == "name") {
      made.name = string();
    } else if (key == "summary") {
      made.summary = string();
    } else if (key == "sizes") {
      made.size_order = strings();
    } else if (key == "shapes") {
      text_.shapes = strings();
    } else if (key == "inputs") {
      for (const std::string& set : strings()) {
        made.inputs.push_back({.name = set});
      }
    } else if (key == "reference") {
      text_.reference = string();
    } else if (key == "flops") {
      text_.flops = string();
    } else if (key == "units") {
      expect(JsonToken::integer, "a whole number");
      text_.units = scan_.integer();
    } else if (key == "arrays") {
      objects([&] { made.parameters.emplace_back(); },
              [&](const std::string& member) { read_array(member); });
    } else if (key == "scalars") {
      objects([&] { made.parameters.push_back({.role = Role::scalar}); },
              [&](const std::string& member) { read_scalar(member); });
    } else {
      scan_.fail_here(text("unknown key ", key,
                           "; expected name, summary, sizes, shapes, inputs, arrays, scalars, "
                           "reference, flops or units"));
    }
  }
  void read_array(const std::string& key) {
    CaseParameter& array = text_.made.parameters.back();
    if (key == "name") {
      array.name = string();
    } else if (key == "role") {
      array.role = one_of("input", "output") == 0 ? Role::input : Role::output;
    } else if (key == "domain") {
      array.domain = one_of("real", "whole") == 0 ? Domain::real : Domain::whole;
    } else if (key == "extents") {
      array.extents = strings();
    } else if (key == "range") {
      text_.ranges[array.name].range = number(string());
    } else if (key == "large") {
      text_.ranges[array.name].large = number(string());
    } else {
      scan_.fail_here(text("unknown key ", key,
                           " of an array; expected name, role, domain, extents, range or large"));
    }
  }
  void read_scalar(const std::string& key) {
    CaseParameter& scalar = text_.made.parameters.back();
    if (key == "name") {
      scalar.name = string();
    } else if (key == "value") {
      scalar.value = number(string());
    } else {
      scan_.fail_here(text("unknown key ", key, " of a scalar; expected name or value"));
    }
  }
  int one_of(const char* first, const char* second) {
    const std::string word = string();
    if (word != first && word != second) {
      scan_.fail_here(text("got ", word, ", expected ", first, " or ", second));
    }
    return word == first ? 0 : 1;
  }

  JsonScanner scan_;
  CaseText text_;
};

bool is_input_set(const std::string& name) {
  return name == "normal" || name == "large" || name == "-inf" || name == "equal" || name == "nan";
}

// Checks what the file says, and adds the parameters for the sizes.
void complete(const std::string& path, CaseText& text) {
  Case& made = text.made;
  check(!made.size_order.empty() && !text.shapes.empty() && !made.inputs.empty(), path,
        ": a case needs sizes, shapes and inputs");
  check(!text.reference.empty(), path, ": a case needs a reference: the name of a C++ file");
  for (const InputSet& set : made.inputs) {
    check(is_input_set(set.name), path, ": got the inputs ", set.name,
          ", expected normal, large, -inf, equal or nan");
  }
  bool has_output = false;
  for (const CaseParameter& p : made.parameters) {
    const bool is_array = p.role == Role::input || p.role == Role::output;
    check(!p.name.empty() && (!is_array || !p.extents.empty()), path,
          ": an array without a name or extents, or a scalar without a name");
    has_output |= p.role == Role::output;
  }
  check(has_output, path, ": a case needs an array with the role output");
  for (const std::string& size : made.size_order) {
    made.parameters.push_back({.name = size, .role = Role::size});
  }
  if (made.name.empty()) {
    made.name = std::filesystem::path(path).stem().string();
  }
  made.shapes.resize(1);  // for the text of errors
  for (const std::string& size : made.size_order) {
    made.shapes[0][size] = 1;
  }
  std::vector<Sizes> shapes;
  for (const std::string& shape : text.shapes) {
    shapes.push_back(made.shape_from(shape));
  }
  made.shapes = shapes;
}

// The arguments of a function of the reference file, by name.
class HostCall {
 public:
  HostCall(Numbers& numbers, std::map<std::string, Array>& outputs, int64_t set)
      : numbers_(numbers), outputs_(outputs), set_(set) {}

  void run(const HostFunction& function) {
    std::vector<HostArgument> arguments;
    for (const Parameter& p : function.parameters()) {
      HostArgument argument;
      if (p.passing == Passing::array) {
        const auto input = numbers_.arrays.find(p.name);
        Array* array = input != numbers_.arrays.end() ? &input->second : &outputs_[p.name];
        check(p.element == Element::f64, function.path(), ":", p.line, ": ", p.name,
              " has the type ", p.type, ", expected double*");
        argument.array = array->data();
      } else {
        argument.number = value_of(function, p);
      }
      arguments.push_back(argument);
    }
    function.call(arguments);
  }

 private:
  double value_of(const HostFunction& function, const Parameter& p) const {
    if (const auto size = numbers_.sizes.find(p.name); size != numbers_.sizes.end()) {
      return static_cast<double>(size->second);
    }
    if (const auto scalar = numbers_.scalars.find(p.name); scalar != numbers_.scalars.end()) {
      return scalar->second;
    }
    check(p.name == "set" || p.name == "seed", function.path(), ":", p.line, ": ", p.name,
          " is no size or scalar of the case, nor set or seed");
    return p.name == "set" ? static_cast<double>(set_) : static_cast<double>(numbers_.seed);
  }

  Numbers& numbers_;
  std::map<std::string, Array>& outputs_;
  int64_t set_;
};

void fill_from_ranges(Numbers& numbers, const CaseText& text, const std::string& set) {
  CaseRandom random(numbers.seed);
  bool special = true;  // only the first array of numbers gets NaN or infinities
  for (const CaseParameter& p : text.made.parameters) {
    if (p.role != Role::input) {
      continue;
    }
    Array& array = numbers.arrays.at(p.name);
    const auto range = text.ranges.find(p.name);
    const FillOptions options = range == text.ranges.end() ? FillOptions() : range->second;
    if (p.domain == Domain::whole) {
      for (double& value : array) {
        value =
            static_cast<double>(random.below(std::max<int64_t>(std::llround(options.range), 1)));
      }
      continue;
    }
    const bool plain = !special && (set == "nan" || set == "-inf");
    fill_array(array, plain ? "normal" : set, random, options);
    special = false;
  }
}

std::map<std::string, Expected> call_reference(const CaseText& text, const HostFunction& reference,
                                               const Numbers& numbers) {
  Numbers own = numbers;
  std::map<std::string, Array> outputs;
  for (const CaseParameter& p : text.made.parameters) {
    if (p.role == Role::output) {
      const auto count = static_cast<size_t>(text.made.count(p, numbers.sizes));
      outputs[p.name].resize(count);
      outputs[p.name + "_bound"].assign(count, -1);
    }
  }
  HostCall(own, outputs, 0).run(reference);
  std::map<std::string, Expected> expected;
  for (const CaseParameter& p : text.made.parameters) {
    if (p.role != Role::output) {
      continue;
    }
    Expected& e = expected[p.name];
    e.values = outputs[p.name];
    e.bounds = outputs[p.name + "_bound"];
    for (size_t i = 0; i < e.bounds.size(); ++i) {
      const double units =
          e.bounds[i] >= 0 ? e.bounds[i] : static_cast<double>(text.units) * std::abs(e.values[i]);
      e.bounds[i] = p.domain == Domain::whole ? 0 : units * numbers.unit;
    }
  }
  return expected;
}

}  // namespace

Case read_case_file(const std::string& path) {
  const std::string json = read_text(path);
  auto text = std::make_shared<CaseText>(CaseReader(path, json).read());
  complete(path, *text);
  const std::string file = (std::filesystem::path(path).parent_path() / text->reference).string();
  const auto module = std::make_shared<HostModule>(file, read_text(file));
  const auto reference = std::make_shared<HostFunction>(module->function("reference"));
  Case made = text->made;
  made.reference = [text, module, reference](const Numbers& numbers) {
    return call_reference(*text, *reference, numbers);
  };
  std::shared_ptr<HostFunction> fill;
  if (module->has("fill")) {
    fill = std::make_shared<HostFunction>(module->function("fill"));
  }
  made.fill = [text, module, fill](Numbers& numbers, const std::string& set) {
    fill_from_ranges(numbers, *text, set);
    if (fill != nullptr) {
      std::map<std::string, Array> none;
      const auto& sets = text->made.inputs;
      const auto at =
          std::find_if(sets.begin(), sets.end(), [&](const InputSet& s) { return s.name == set; });
      HostCall(numbers, none, at - sets.begin()).run(*fill);
    }
  };
  made.flops = [text](const Sizes& sizes) {
    return static_cast<double>(extent_of(text->flops, sizes));
  };
  return made;
}

}  // namespace binade::lab
