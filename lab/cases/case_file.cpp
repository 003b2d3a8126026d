// Calls the reference of a case file.
#include <binade/lab/cases/case_file.h>
#include <binade/lab/cases/case_text_internal.h>
#include <binade/lab/cases/host_function_internal.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace binade::lab {
namespace {

// Looks up the arguments of the reference function by name.
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
  for (size_t i = 0; i < text.fills.size(); ++i) {
    const CaseParameter& p = text.made.parameters[i];
    if (p.role != Role::input) {
      continue;
    }
    Array& array = numbers.arrays.at(p.name);
    const FillOptions& options = text.fills[i];
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
  const std::string json = read_source(path);
  const auto text = std::make_shared<CaseText>(case_text_from(path, json));
  const std::string file = (std::filesystem::path(path).parent_path() / text->reference).string();
  const auto module = std::make_shared<HostModule>(file, read_source(file));
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
