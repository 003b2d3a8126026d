// Plain CUDA C++ to C++ for the host executor. Only what C++ lacks is rewritten, in place and on
// its own line: __shared__ declarations, launches, and the entry function. Everything else reaches
// the compiler as the user wrote it, under the user's line numbers.
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
const char* name_of(Element element);  // as CUDA C++ writes it

enum class Passing : uint8_t { array, value, stream };

// A parameter of the entry function.
struct Parameter {
  std::string name = {};
  std::string type = {};  // as written
  Passing passing = Passing::value;
  Element element = Element::f32;  // of arrays and values
  bool is_const = false;           // of arrays: the kernel may not write
  int line = 0;
};

// Source that the lab cannot run. The text begins with "file:line: ".
class SourceError : public Error {
 public:
  explicit SourceError(const std::string& text) : Error(printable(text)) {}
};

struct Translation {
  std::string code = {};                       // C++
  std::vector<Parameter> parameters = {};      // of solve(), in its order
  std::vector<std::string> files = {};         // the file and those that it includes by ""
  std::vector<std::string> shared_names = {};  // of __shared__ arrays, in the order of the source
};

// Translates the text of a file named `path`, whose entry is extern "C" void solve(...). Files that
// it includes by "" are read beside it and translated too. Throws SourceError.
Translation translate(const std::string& path, std::string_view source);
Translation translate_file(const std::string& path);
// The bytes of a regular file of at most 8 MiB. Throws Error that names it.
std::string read_source(const std::string& path);

// The parameters of extern "C" void FUNCTION(...) that the source defines; nothing if it does not.
std::optional<std::vector<Parameter>> parameters_of(const std::string& path,
                                                    std::string_view source,
                                                    std::string_view function);

}  // namespace binade::lab
