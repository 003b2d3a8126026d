// Finds the name of an indexed array in a source: the compiler's bounds check reports the place and
// the type, but not the name.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace binade::lab {

struct Subscript {
  std::string array = {};  // "tile", "pair.low"
  std::string base = {};   // the indexed expression: "tile[threadIdx.y]" for its second index
};

// The index that the compiler's check reports at `line` and `column` (in bytes, from 1; g++ names
// the closing bracket, clang++ the array). `dimensions` is the number of brackets in the indexed
// type, 1 for float [33]. Without a column, the only index in the line. nullopt if no name precedes
// it.
std::optional<Subscript> subscript_at(std::string_view source, int line, int column,
                                      int dimensions);

}  // namespace binade::lab
