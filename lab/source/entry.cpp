// Finds the entry function: extern "C" void solve(...).
#include <binade/lab/source/rewrite_internal.h>

#include <map>

namespace binade::lab {
namespace {

constexpr std::string_view kEntry = "solve";

const std::map<std::string, Element, std::less<>>& element_names() {
  static const std::map<std::string, Element, std::less<>> names = {
      {"float", Element::f32},
      {"double", Element::f64},
      {"half", Element::f16},
      {"__half", Element::f16},
      {"__nv_bfloat16", Element::bf16},
      {"nv_bfloat16", Element::bf16},
      {"int", Element::i32},
      {"signed", Element::i32},
      {"int32_t", Element::i32},
      {"std :: int32_t", Element::i32},
      {"unsigned", Element::u32},
      {"unsigned int", Element::u32},
      {"uint32_t", Element::u32},
      {"std :: uint32_t", Element::u32},
      {"long long", Element::i64},
      {"long long int", Element::i64},
      {"long", Element::i64},
      {"long int", Element::i64},
      {"int64_t", Element::i64},
      {"std :: int64_t", Element::i64},
      {"ptrdiff_t", Element::i64},
      {"size_t", Element::u64},
      {"std :: size_t", Element::u64},
      {"unsigned long long", Element::u64},
      {"unsigned long", Element::u64},
      {"uint64_t", Element::u64},
      {"std :: uint64_t", Element::u64},
      {"unsigned char", Element::u8},
      {"uint8_t", Element::u8},
      {"std :: uint8_t", Element::u8},
      {"signed char", Element::i8},
      {"int8_t", Element::i8},
      {"std :: int8_t", Element::i8},
  };
  return names;
}

// Parses the parameter in the tokens [first, end).
Parameter read_parameter(const Rewriter& file, size_t first, size_t end) {
  const Token& name = file.at(end - 1);
  if (end - first < 2 || name.kind != TokenKind::identifier) {
    file.fail(file.at(first), "a parameter without a name; name it as the case does");
  }
  Parameter parameter;
  parameter.name = name.text;
  parameter.line = name.line;
  parameter.type = file.between(first, end - 1);
  std::string base;
  int stars = 0;
  for (size_t i = first; i + 1 < end; ++i) {
    const Token& token = file.at(i);
    if (token.is("*")) {
      ++stars;
    } else if (token.is("const")) {
      parameter.is_const |= stars == 0;
    } else if (!token.is("__restrict__") && !token.is("__restrict") && !token.is("struct")) {
      base += (base.empty() ? "" : " ") + std::string(token.text);
    }
  }
  if (base == "cudaStream_t" && stars == 0) {
    parameter.passing = Passing::stream;
    return parameter;
  }
  const auto found = element_names().find(base);
  if (stars > 1 || found == element_names().end()) {
    file.fail(name, "parameter ", parameter.name, " has the type ", parameter.type,
              "; expected cudaStream_t, or a number or a pointer to numbers of type float, double, "
              "__half, __nv_bfloat16 or an integer");
  }
  parameter.element = found->second;
  parameter.passing = stars == 1 ? Passing::array : Passing::value;
  return parameter;
}

std::vector<Parameter> read_parameters(const Rewriter& file, size_t open) {
  const size_t close = file.closing(open);
  std::vector<Parameter> parameters;
  size_t first = open + 1;
  for (size_t i = first; i <= close && close > open + 1; ++i) {
    if (file.at(i).is(",") || i == close) {
      parameters.push_back(read_parameter(file, first, i));
      first = i + 1;
    }
  }
  return parameters;
}

bool has_c_linkage(const Rewriter& file, size_t name) {
  const size_t least = name > 6 ? name - 6 : 0;
  for (size_t i = name; i-- > least;) {
    if (file.at(i).is("\"C\"")) {
      return true;
    }
  }
  // Looks for a block extern "C" { ... } around the function.
  int depth = 0;
  for (size_t i = name; i-- > 2;) {
    depth += file.at(i).is("}") ? 1 : file.at(i).is("{") ? -1 : 0;
    if (depth < 0 && file.at(i - 1).is("\"C\"")) {
      return true;
    }
  }
  return false;
}

// True if a function is defined here: "name(...) {".
bool is_definition(const Rewriter& file, size_t name) {
  return file.at(name + 1).is("(") && file.at(file.closing(name + 1) + 1).is("{");
}

}  // namespace

void find_entry(Rewriter& file, TranslationState& state) {
  for (size_t i = 1; i < file.size(); ++i) {
    const Token& token = file.at(i);
    const bool named = token.is(kEntry) || token.is("main");
    if (!named || token.kind != TokenKind::identifier || !is_definition(file, i)) {
      continue;
    }
    if (token.is("main")) {  // a program with its own main(), which the lab does not start
      file.replace(i, i, "binade_main_of_the_file");
      continue;
    }
    if (!file.at(i - 1).is("void") || !has_c_linkage(file, i)) {
      file.fail(token, "solve() is not declared extern \"C\" void solve(...)");
    }
    if (state.has_entry) {
      file.fail(token, "a second solve()");
    }
    state.has_entry = true;
    state.result.parameters = read_parameters(file, i + 1);
  }
}

std::optional<std::vector<Parameter>> parameters_of(const std::string& path,
                                                    std::string_view source,
                                                    std::string_view function) {
  const Rewriter file(path, source);
  for (size_t i = 1; i < file.size(); ++i) {
    const Token& token = file.at(i);
    if (token.is(function) && token.kind == TokenKind::identifier && is_definition(file, i)) {
      if (!has_c_linkage(file, i)) {
        file.fail(token, function, "() is not declared extern \"C\" void ", function, "(...)");
      }
      return read_parameters(file, i + 1);
    }
  }
  return std::nullopt;
}

std::string entry_code(const std::vector<Parameter>& parameters) {
  std::string code = "extern \"C\" void binade_lab_solve(void* const* binade_arguments) { solve(";
  for (size_t i = 0; i < parameters.size(); ++i) {
    code += text(i == 0 ? "" : ", ", "::binade::lab::argument<", parameters[i].type,
                 ">(binade_arguments[", i, "])");
  }
  return code + "); static_cast<void>(binade_arguments); }\n";
}

}  // namespace binade::lab
