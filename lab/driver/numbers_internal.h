// Prepares the inputs of a case for a kernel, and compares its outputs with the reference.
#pragma once
#include <binade/lab/cases/case.h>
#include <binade/lab/runner/problem.h>

#include <optional>

namespace binade::lab {

// A run and its expected outputs.
struct PreparedRun {
  ProblemRun run = {};
  std::map<std::string, Expected> expected = {};
};

struct RunChoice {
  Sizes sizes = {};
  std::string inputs = {};
  uint64_t seed = 1;
};
// The arguments of solve() in order, and the reference if `with_reference`.
PreparedRun prepare_run(const Case& of, const std::vector<Parameter>& parameters,
                        const RunChoice& choice, bool with_reference);
// Throws Error if solve() does not fit the case: an unknown name, a missing array or a wrong type.
void check_parameters(const Case& of, const Translation& translation, const std::string& file);

// Converts values to the bytes of a type and back.
std::string to_bytes_of(const Array& values, Element element);
Array from_bytes_of(std::string_view bytes, Element element);

// How an output differs from its expected values.
struct Difference {
  int64_t wrong = 0, total = 0;
  int64_t first = -1;  // index of the first wrong element
  double got = 0, expected = 0;
  double worst = 0;  // largest error relative to the allowed error
  int64_t worst_at = 0;
};
Difference compare(const Array& got, const Expected& expected, Element element);
// For example "y[3][17]" for an index into an array with these extents.
std::string place_of(const CaseParameter& array, const Sizes& sizes, int64_t index);
std::string number_text(double value);

}  // namespace binade::lab
