#include <binade/kernels/base/half.h>
#include <binade/lab/driver/numbers_internal.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

namespace binade::lab {
namespace {

template <class F>
auto with_type(Element element, F f) {
  switch (element) {
    case Element::f32: return f(float());
    case Element::f64: return f(double());
    case Element::f16: return f(half());
    case Element::bf16: return f(bfloat16());
    case Element::i32: return f(int32_t());
    case Element::u32: return f(uint32_t());
    case Element::i64: return f(int64_t());
    case Element::u64: return f(uint64_t());
    case Element::u8: return f(uint8_t());
    case Element::i8: break;
  }
  return f(int8_t());
}

bool is_real(Element element) {
  return element == Element::f32 || element == Element::f64 || element == Element::f16 ||
         element == Element::bf16;
}

// The distance from |value| to the next number of the type, and the type's largest number.
struct Grid {
  double step, largest;
};
Grid grid_of(Element element, double value) {
  if (!is_real(element)) {
    return {0, HUGE_VAL};
  }
  const int digits = element == Element::f32   ? 24
                     : element == Element::f64 ? 53
                     : element == Element::f16 ? 11
                                               : 8;
  const int least = element == Element::f16 ? -14 : element == Element::f64 ? -1022 : -126;
  const int exponent = value == 0 ? least : std::max(std::ilogb(value), least);
  const double largest = element == Element::f16   ? 65504
                         : element == Element::f64 ? std::numeric_limits<double>::max()
                         : element == Element::f32 ? std::numeric_limits<float>::max()
                                                   : 0x1.fep127;
  return {std::ldexp(1.0, exponent - digits + 1), largest};
}

const Parameter* find_parameter(const std::vector<Parameter>& list, const std::string& name) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const Parameter& p) { return p.name == name; });
  return found == list.end() ? nullptr : &*found;
}

// The array whose leading dimension is `name`, such as "ldx" for x.
const CaseParameter* leading_array(const Case& of, const std::string& name) {
  const CaseParameter* array = name.starts_with("ld") ? of.find(name.substr(2)) : nullptr;
  return array != nullptr && array->extents.size() > 1 ? array : nullptr;
}

constexpr int64_t kPadding = 5;  // extra elements between rows with a leading dimension

int64_t row_of(const CaseParameter& array, const Sizes& sizes) {
  return extent_of(array.extents.back(), sizes);
}

ProblemArgument array_argument(const Case& of, const CaseParameter& array,
                               const std::vector<Parameter>& parameters, const Numbers& numbers) {
  const Parameter& parameter = *find_parameter(parameters, array.name);
  ProblemArgument argument;
  argument.element = parameter.element;
  argument.is_output = array.role == Role::output;
  const int64_t count = of.count(array, numbers.sizes), row = row_of(array, numbers.sizes);
  const bool leading = find_parameter(parameters, "ld" + array.name) != nullptr;
  argument.count = count;
  if (leading) {
    argument.row_elements = row;
    argument.row_pitch = row + kPadding;
    argument.count = count / row * (row + kPadding);
  }
  if (argument.is_output) {
    return argument;
  }
  const Array& values = numbers.in(array.name);
  if (!leading) {
    argument.bytes = to_bytes_of(values, parameter.element);
    return argument;
  }
  Array padded(static_cast<size_t>(argument.count), std::numeric_limits<double>::quiet_NaN());
  for (int64_t i = 0; i < count; ++i) {
    padded[static_cast<size_t>(i / row * (row + kPadding) + i % row)] =
        values[static_cast<size_t>(i)];
  }
  argument.bytes = to_bytes_of(padded, parameter.element);
  return argument;
}

// Fills the inputs and rounds them to the types in solve().
Numbers numbers_of(const Case& of, const std::vector<Parameter>& parameters,
                   const RunChoice& choice) {
  Numbers numbers;
  numbers.sizes = choice.sizes;
  numbers.seed = choice.seed;
  for (const CaseParameter& p : of.parameters) {
    if (p.role == Role::scalar) {
      numbers.scalars[p.name] = p.value;
    } else if (p.role == Role::input) {
      numbers.arrays[p.name].resize(static_cast<size_t>(of.count(p, choice.sizes)));
    }
  }
  of.fill(numbers, choice.inputs);
  for (auto& [name, values] : numbers.arrays) {
    if (const Parameter* parameter = find_parameter(parameters, name)) {
      values = from_bytes_of(to_bytes_of(values, parameter->element), parameter->element);
    }
  }
  for (const Parameter& parameter : parameters) {
    if (parameter.element == Element::f64 && parameter.passing == Passing::array) {
      numbers.unit = 0x1p-53;
    }
  }
  return numbers;
}

}  // namespace

std::string to_bytes_of(const Array& values, Element element) {
  return with_type(element, [&](auto type) {
    using T = decltype(type);
    std::string bytes(values.size() * sizeof(T), '\0');
    for (size_t i = 0; i < values.size(); ++i) {
      T value;
      if constexpr (std::is_integral_v<T>) {
        value = static_cast<T>(static_cast<int64_t>(values[i]));
      } else {
        value = static_cast<T>(values[i]);
      }
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
    return bytes;
  });
}

Array from_bytes_of(std::string_view bytes, Element element) {
  return with_type(element, [&](auto type) {
    using T = decltype(type);
    Array values(bytes.size() / sizeof(T));
    for (size_t i = 0; i < values.size(); ++i) {
      T value;
      std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
      values[i] = static_cast<double>(value);
    }
    return values;
  });
}

PreparedRun prepare_run(const Case& of, const std::vector<Parameter>& parameters,
                        const RunChoice& choice, bool with_reference) {
  const Numbers numbers = numbers_of(of, parameters, choice);
  PreparedRun prepared;
  prepared.run.shape = of.text_of(choice.sizes);
  prepared.run.inputs = choice.inputs;
  for (const Parameter& parameter : parameters) {
    ProblemArgument argument;
    const CaseParameter* of_case = of.find(parameter.name);
    if (parameter.passing == Passing::value) {
      const CaseParameter* leading =
          of_case == nullptr ? leading_array(of, parameter.name) : nullptr;
      const double value =
          leading != nullptr ? static_cast<double>(row_of(*leading, choice.sizes) + kPadding)
          : of_case->role == Role::size ? static_cast<double>(choice.sizes.at(parameter.name))
                                        : numbers.scalars.at(parameter.name);
      argument.bytes = to_bytes_of({value}, parameter.element);
      argument.element = parameter.element;
    } else if (parameter.passing == Passing::array) {
      argument = array_argument(of, *of_case, parameters, numbers);
    }
    argument.name = parameter.name;
    argument.passing = parameter.passing;
    prepared.run.arguments.push_back(std::move(argument));
  }
  if (with_reference) {
    prepared.expected = of.reference(numbers);
  }
  return prepared;
}

void check_parameters(const Case& of, const Translation& translation, const std::string& file) {
  std::string names;
  for (const CaseParameter& p : of.parameters) {
    names += (names.empty() ? "" : ", ") + p.name;
  }
  for (const Parameter& p : translation.parameters) {
    const auto refuse = [&](const auto&... why) {
      throw SourceError(text(file, ":", p.line, ": parameter ", p.name, " of solve() ", why...));
    };
    const CaseParameter* of_case = of.find(p.name);
    const bool is_array = of_case != nullptr && !of_case->extents.empty();
    if (p.passing == Passing::stream || (of_case == nullptr && p.passing == Passing::value &&
                                         leading_array(of, p.name) != nullptr)) {
      continue;
    }
    if (of_case == nullptr) {
      refuse("is none of the case ", of.name, ": ", names);
    }
    if (is_array != (p.passing == Passing::array)) {
      refuse("has the type ", p.type, ", but in the case ", of.name, " it is ",
             is_array ? "an array" : "a number");
    }
    if (is_array && p.is_const != (of_case->role == Role::input)) {
      refuse("has the type ", p.type, ", but in the case ", of.name, " it is an ",
             of_case->role == Role::input ? "input: const" : "output: not const");
    }
    if (is_array && of_case->domain == Domain::real && !is_real(p.element)) {
      refuse("has the type ", p.type, "; expected float, double, __half or __nv_bfloat16");
    }
    if (of_case->role == Role::size && is_real(p.element)) {
      refuse("has the type ", p.type, "; expected an integer");
    }
  }
  for (const CaseParameter& p : of.parameters) {
    if (!p.extents.empty() && find_parameter(translation.parameters, p.name) == nullptr) {
      throw SourceError(text(file, ": solve() has no parameter ", p.name, "; the case ", of.name,
                             " has ", names));
    }
  }
}

Difference compare(const Array& got, const Expected& expected, Element element) {
  Difference difference;
  difference.total = static_cast<int64_t>(got.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const double want = expected.values[i], value = got[i];
    double error = 0;  // relative to the allowed error
    if (std::isnan(want) || std::isnan(value)) {
      error = std::isnan(want) && std::isnan(value) ? 0 : HUGE_VAL;
    } else if (value != want) {
      const Grid grid = grid_of(element, std::isfinite(want) ? want : 0);
      const double allowed = expected.bounds[i] + grid.step / 2;
      const bool overflows = std::abs(want) + allowed > grid.largest;
      if (std::isinf(value)) {
        error = overflows && (value > 0) == (want > 0) ? 0 : HUGE_VAL;
      } else {
        error = !std::isfinite(want) ? HUGE_VAL
                : allowed > 0        ? std::abs(value - want) / allowed
                                     : HUGE_VAL;
      }
    }
    if (error > difference.worst) {
      difference.worst = error;
      difference.worst_at = static_cast<int64_t>(i);
    }
    if (error > 1) {
      if (difference.wrong++ == 0) {
        difference.first = static_cast<int64_t>(i);
        difference.got = value;
        difference.expected = want;
      }
    }
  }
  return difference;
}

std::string place_of(const CaseParameter& array, const Sizes& sizes, int64_t index) {
  std::string place;
  for (size_t i = array.extents.size(); i-- > 0;) {
    const int64_t extent = std::max<int64_t>(extent_of(array.extents[i], sizes), 1);
    place.insert(0, text("[", i == 0 ? index : index % extent, "]"));
    index /= extent;
  }
  return array.name + place;
}

std::string number_text(double value) {
  if (std::isnan(value)) {
    return "nan";  // without its sign
  }
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.6g", value);
  return digits;
}

}  // namespace binade::lab
