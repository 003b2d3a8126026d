#include <binade/core/io/json_scan_internal.h>
#include <binade/lab/cases/case_text_internal.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>

namespace binade::lab {
namespace {

constexpr double kMostNumber = 0x1p53;

class CaseReader {
 public:
  CaseReader(const std::string& path, std::string_view json) : scan_(path, json, {.where = ""}) {}

  CaseText read() {
    expect(JsonToken::begin_object, "an object");
    for (JsonToken token = scan_.next(); token == JsonToken::key; token = scan_.next()) {
      read_member(std::string(scan_.string()));
    }
    expect(JsonToken::end, "nothing after the object");
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
    if (end == digits.c_str() || *end != '\0' || !(std::abs(value) <= kMostNumber)) {
      scan_.fail_here(text("expected a number up to 2^53 in a string, got ", digits));
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
      objects([&] { add({}); }, [&](const std::string& member) { read_array(member); });
    } else if (key == "scalars") {
      objects([&] { add({.role = Role::scalar}); },
              [&](const std::string& member) { read_scalar(member); });
    } else {
      scan_.fail_here(text("unknown key ", key,
                           "; expected name, summary, sizes, shapes, inputs, arrays, scalars, "
                           "reference, flops or units"));
    }
  }
  void add(CaseParameter parameter) {
    text_.made.parameters.push_back(std::move(parameter));
    text_.fills.emplace_back();
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
      text_.fills.back().range = number(string());
    } else if (key == "large") {
      text_.fills.back().large = number(string());
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

bool is_identifier(const std::string& name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  for (size_t i = 0; i < name.size(); ++i) {
    if (!is_letter(name[i]) && (i == 0 || name[i] < '0' || name[i] > '9')) {
      return false;
    }
  }
  return !name.empty();
}

// Checks that the names of sizes, arrays and scalars are identifiers and differ.
void check_names(const std::string& path, const Case& made) {
  std::set<std::string> names;
  for (const CaseParameter& p : made.parameters) {
    check(is_identifier(p.name), path, ": got the name '", p.name,
          "' of an array, a scalar or a size, expected that of a parameter of solve()");
    check(names.insert(p.name).second, path, ": two arrays, scalars or sizes have the name ",
          p.name);
  }
}

bool is_input_set(const std::string& name) {
  return name == "normal" || name == "large" || name == "-inf" || name == "equal" || name == "nan";
}

// Checks the contents of the file and adds the parameters for the sizes.
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
    check(!is_array || !p.extents.empty(), path, ": the array ", p.name, " has no extents");
    has_output |= p.role == Role::output;
  }
  check(has_output, path, ": a case needs an array with the role output");
  for (const std::string& size : made.size_order) {
    made.parameters.push_back({.name = size, .role = Role::size});
  }
  check_names(path, made);
  if (made.name.empty()) {
    made.name = std::filesystem::path(path).stem().string();
  }
  made.shapes.resize(1);  // one shape, for the text of errors
  for (const std::string& size : made.size_order) {
    made.shapes[0][size] = 1;
  }
  std::vector<Sizes> shapes;
  for (const std::string& shape : text.shapes) {
    shapes.push_back(made.shape_from(shape));
    extent_of(text.flops, shapes.back());
  }
  made.shapes = shapes;
}

}  // namespace

CaseText case_text_from(const std::string& path, std::string_view json) {
  CaseText read = CaseReader(path, json).read();
  try {
    complete(path, read);
  } catch (const Error& error) {
    const std::string said = error.what();
    throw Error(said.starts_with(path) ? said : path + ": " + said);
  }
  return read;
}

}  // namespace binade::lab
