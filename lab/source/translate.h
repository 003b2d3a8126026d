// Translates CUDA C++ to C++ for the host executor. Only constructs that C++ lacks are rewritten,
// each on its own line: __shared__ declarations, launches and the entry function. The compiler sees
// everything else as the user wrote it, with the user's line numbers.
#pragma once
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/printable.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace binade::lab {

enum class Element : uint8_t { f32, f64, f16, bf16, i32, u32, i64, u64, u8, i8 };
size_t bytes_of(Element element);
const char* name_of(Element element);  // spelling in CUDA C++

enum class Passing : uint8_t { array, value, stream };

// A parameter of the entry function.
struct Parameter {
  std::string name = {};
  std::string type = {};  // as written in the source
  Passing passing = Passing::value;
  Element element = Element::f32;  // element type of an array, or type of a value
  bool is_const = false;           // arrays: the kernel must not write
  int line = 0;
};

// Thrown for source that the lab cannot run. The text begins with "file:line: ".
class SourceError : public Error {
 public:
  explicit SourceError(const std::string& text) : Error(printable(text)) {}
};

struct Translation {
  std::string code = {};                       // the translated C++
  std::vector<Parameter> parameters = {};      // parameters of solve() in order
  std::vector<std::string> files = {};         // the file and the files that it includes with ""
  std::vector<std::string> shared_names = {};  // names of __shared__ arrays in source order
};

// Translates the text of a file named `path`, whose entry is extern "C" void solve(...). Files that
// it includes with "" are found beside it and translated too. Throws SourceError.
Translation translate(const std::string& path, std::string_view source);
Translation translate_file(const std::string& path);
// The contents of a regular file of at most 8 MiB. Throws an Error that names it.
std::string read_source(const std::string& path);

// The parameters of extern "C" void FUNCTION(...) if the source defines it, else nullopt.
std::optional<std::vector<Parameter>> parameters_of(const std::string& path,
                                                    std::string_view source,
                                                    std::string_view function);

}  // namespace binade::lab
