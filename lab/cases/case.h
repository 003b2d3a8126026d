// A case: what a kernel is to compute, with the shapes and inputs that it is tried on and a
// reference in double precision. binade kernel FILE.cu --case softmax checks a file against one.
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
enum class Domain : uint8_t { real, whole };  // of the elements of an array

struct CaseParameter {
  std::string name = {};
  Role role = Role::input;
  Domain domain = Domain::real;
  // The extents of an array, outermost first: names of sizes, numbers, and sums of products of
  // them, such as "rows+1" and "rows*8". solve() may have a parameter ld<name>: then rows of the
  // last extent begin so many elements apart.
  std::vector<std::string> extents = {};
  double value = 0;  // of a scalar
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
// A value that is NaN asks for NaN, an infinite one for the same infinity.
struct Expected {
  Array values = {};
  Array bounds = {};  // of the arithmetic before the last rounding
};

struct InputSet {
  std::string name = {};  // "normal", "large", "-inf", "equal", "nan"
  bool fits_f16 = true;   // false: its results leave the range of __half
};

struct Case {
  std::string name = {};
  std::string summary = {};  // what it computes, as a formula
  std::vector<CaseParameter> parameters = {};
  std::vector<std::string> size_order = {};  // of a shape in a text, "rows x cols"
  std::vector<Sizes> shapes = {};            // small and odd ones
  std::vector<InputSet> inputs = {};
  std::string lesson = {};  // of docs/kernels, for hints

  // Fills the inputs of a set; arrays have their sizes already.
  std::function<void(Numbers&, const std::string& set)> fill = {};
  std::function<std::map<std::string, Expected>(const Numbers&)> reference = {};
  std::function<double(const Sizes&)> flops = {};

  const CaseParameter* find(const std::string& name) const;
  int64_t count(const CaseParameter& array, const Sizes& sizes) const;  // its elements
  std::string text_of(const Sizes& sizes) const;                        // "7x33"
  // "4096x1024" as sizes; throws Error.
  Sizes shape_from(const std::string& text) const;
};

// The value of an extent. Throws Error for a name that is no size.
int64_t extent_of(const std::string& extent, const Sizes& sizes);

// The names of the cases that are built in.
std::vector<std::string> case_names();
// By name, or from a file (case_file.h) if the name ends in .json. Throws Error.
Case find_case(const std::string& name);

}  // namespace binade::lab
