// A case is the task that a kernel is checked against: shapes and inputs to try, and a reference in
// double precision. `binade kernel FILE.cu --case softmax` checks a file against a case.
#pragma once
#include <binade/lab/source/translate.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace binade::lab {

enum class Role : uint8_t {
  input,   // an array, not written by the kernel
  output,  // an array without values when solve() begins; the kernel writes all of it
  size,    // a whole number of the shape
  scalar,  // a number that is the same for all shapes
};
enum class Domain : uint8_t { real, whole };  // whether array elements are real or whole numbers

struct CaseParameter {
  std::string name = {};
  Role role = Role::input;
  Domain domain = Domain::real;
  // The extents of an array, outermost first: names of sizes, numbers, and sums of products of
  // them, such as "rows+1" and "rows*8". solve() may have a parameter ld<name>, the leading
  // dimension: the number of elements from the start of one row to the start of the next.
  std::vector<std::string> extents = {};
  double value = 0;  // the value of a scalar
};

using Sizes = std::map<std::string, int64_t>;
using Array = std::vector<double>;

// The numbers of one call, as a kernel gets them: inputs are rounded to the types of solve().
struct Numbers {
  Sizes sizes = {};
  std::map<std::string, double> scalars = {};
  std::map<std::string, Array> arrays = {};
  uint64_t seed = 1;
  // The unit roundoff of the arithmetic that a kernel is expected to use: 2^-24, or 2^-53 where an
  // array is double.
  double unit = 0x1p-24;

  int64_t size(const std::string& name) const { return sizes.at(name); }
  const Array& in(const std::string& name) const { return arrays.at(name); }
};

// What an output must be: |y - value| <= bound + half a unit in the last place of the output type.
// Where the value is NaN, y must be NaN; where it is infinite, y must be the same infinity.
struct Expected {
  Array values = {};
  Array bounds = {};  // error bounds of the arithmetic before the final rounding
};

struct InputSet {
  std::string name = {};  // "normal", "large", "-inf", "equal", "nan"
  bool fits_f16 = true;   // false: the results exceed the range of __half
};

struct Case {
  std::string name = {};
  std::string summary = {};  // what it computes, as a formula
  std::vector<CaseParameter> parameters = {};
  std::vector<std::string> size_order = {};  // the sizes in the order in which a shape lists them
  std::vector<Sizes> shapes = {};            // small and odd shapes
  std::vector<InputSet> inputs = {};
  std::string lesson = {};  // the lesson in docs/kernels that hints point to

  // Fills the inputs for an input set; the arrays have their sizes already.
  std::function<void(Numbers&, const std::string& set)> fill = {};
  std::function<std::map<std::string, Expected>(const Numbers&)> reference = {};
  std::function<double(const Sizes&)> flops = {};

  const CaseParameter* find(const std::string& name) const;
  int64_t count(const CaseParameter& array, const Sizes& sizes) const;  // number of elements
  std::string text_of(const Sizes& sizes) const;                        // "7x33"
  // Parses "4096x1024"; throws Error.
  Sizes shape_from(const std::string& text) const;
};

// The value of an extent. Throws Error for an unknown name.
int64_t extent_of(const std::string& extent, const Sizes& sizes);

// The names of the built-in cases.
std::vector<std::string> case_names();
// Returns a built-in case, or reads a file (case_file.h) if `name` ends in .json. Throws Error.
Case find_case(const std::string& name);

}  // namespace binade::lab
