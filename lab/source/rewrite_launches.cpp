// Turns kernel<<<grid, block, shared, stream>>>(arguments) into a call of the lab's launch().
#include <binade/lab/source/rewrite_internal.h>

namespace binade::lab {
namespace {

// The first of three adjacent ">" that stand outside of brackets and before "(".
size_t end_of_configuration(const Rewriter& file, size_t open) {
  for (size_t i = open + 1; i + 3 < file.size(); ++i) {
    const Token& token = file.at(i);
    if (token.is("(") || token.is("[") || token.is("{")) {
      i = file.closing(i);
    } else if (token.is(";")) {
      break;
    } else if (token.is(">") && file.at(i + 1).is(">") && file.at(i + 2).is(">") &&
               file.at(i + 1).begin == token.begin + 1 && file.at(i + 2).begin == token.begin + 2 &&
               file.at(i + 3).is("(")) {
      return i;
    }
  }
  file.fail(file.at(open), "no >>>( for this <<<");
}

size_t count_parts(const Rewriter& file, size_t first, size_t end) {
  size_t parts = first < end ? 1 : 0;
  int angle = 0;
  for (size_t i = first; i < end; ++i) {
    const Token& token = file.at(i);
    if (token.is("(") || token.is("[") || token.is("{")) {
      i = file.closing(i);
    }
    const bool opens = token.is("<") && file.at(i - 1).kind == TokenKind::identifier;
    angle += opens ? 1 : token.is(">") && angle > 0 ? -1 : 0;
    parts += token.is(",") && angle == 0 ? 1 : 0;
  }
  return parts;
}

// The last token of the body of the device function whose specifier is at `i`. Returns `i` if it
// has no body: a variable, a declaration, or a function for host and device.
size_t end_of_device_function(const Rewriter& file, size_t i) {
  if (file.at(i + 1).is("__host__") || (i > 0 && file.at(i - 1).is("__host__"))) {
    return i;
  }
  for (size_t at = i + 1; at < file.size(); ++at) {
    const Token& token = file.at(at);
    if (token.is("(") || token.is("[")) {
      at = file.closing(at);
    } else if (token.is("{")) {
      return file.closing(at);
    } else if (token.is(";") || token.is("=") || token.is("}")) {
      break;
    }
  }
  return i;
}

}  // namespace

void rewrite_launches(Rewriter& file) {
  size_t end_of_device = 0;  // end of the device function that contains the token
  for (size_t i = 0; i < file.size(); ++i) {
    if ((file.at(i).is("__global__") || file.at(i).is("__device__")) && i >= end_of_device) {
      end_of_device = end_of_device_function(file, i);
    }
    if (!file.at(i).is("<<<")) {
      continue;
    }
    if (i < end_of_device) {
      file.fail(file.at(i), "a launch by a kernel; the lab runs launches of host code only");
    }
    if (i == 0) {
      file.fail(file.at(i), "expected the name of a kernel before <<<");
    }
    const size_t first = file.begin_of_qualified(i - 1), close = end_of_configuration(file, i);
    const size_t parts = count_parts(file, i + 1, close);
    if (parts < 2 || parts > 4) {
      file.fail(file.at(i), "got ", parts,
                " values between <<< and >>>, expected grid, block, and perhaps bytes of shared "
                "memory and a stream");
    }
    const std::string kernel(file.between(first, i));
    std::string name;
    for (const char c : kernel) {  // make the name a string literal
      name += c == '\n' ? ' ' : c;
      if (c == '"' || c == '\\') {
        name.back() = '_';
      }
    }
    const bool has_arguments = !file.at(close + 4).is(")");
    const std::string configuration(file.between(i + 1, close));
    file.replace(first, close + 3,
                 text("::binade::lab::Launch(\"", name, "\", __FILE__, ", file.at(i).line,
                      ").with(", configuration, ").run([=](auto... binade_values) { ", kernel,
                      "(binade_values...); }", has_arguments ? ", " : ""));
    i = close + 3;
  }
}

}  // namespace binade::lab
