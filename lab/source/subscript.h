// The array of an index in a source: the compiler's check of bounds says the place and the type,
// not the name.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace binade::lab {

struct Subscript {
  std::string array = {};  // "tile", "pair.low"
  std::string base = {};   // what the index is of: "tile[threadIdx.y]" for its second index
};

// The index whose check the compiler placed at `line` and `column` (in bytes, from 1; g++ names the
// closing bracket, clang++ the array). `dimensions`: the brackets of the type that is indexed, 1
// for float [33]. Without a place, the only index of the line. Nothing if there is no name before
// it.
std::optional<Subscript> subscript_at(std::string_view source, int line, int column,
                                      int dimensions);

}  // namespace binade::lab
