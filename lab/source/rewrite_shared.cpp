// Turns __shared__ declarations into references to the block's shared memory.
#include <binade/lab/source/rewrite_internal.h>

namespace binade::lab {
namespace {

bool is_specifier(const Token& token) {
  return token.is("extern") || token.is("static") || token.is("__shared__") ||
         token.is("volatile") || token.is("alignas") || token.is("__align__");
}

// The parts of "extern __shared__ alignas(16) T a[4], b;".
struct SharedDeclaration {
  size_t first = 0, last = 0;  // token range with the semicolon
  bool is_extern = false;
  std::string alignment = {};     // an expression; empty: alignof(type)
  std::vector<size_t> rest = {};  // tokens left after removing the specifiers
};

// The first token of the declaration whose __shared__ is at `at`.
size_t first_of_declaration(const Rewriter& file, size_t at) {
  size_t first = at;
  while (first > 0) {
    const Token& before = file.at(first - 1);
    if (is_specifier(before)) {
      --first;
      continue;
    }
    // Skip "alignas(16)" before __shared__.
    size_t open = first;
    if (before.is(")")) {
      for (open = first - 1; open > 0 && !file.at(open).is("("); --open) {
      }
    }
    if (open == first || open == 0 ||
        !(file.at(open - 1).is("alignas") || file.at(open - 1).is("__align__"))) {
      break;
    }
    first = open - 1;
  }
  return first;
}

SharedDeclaration read_declaration(const Rewriter& file, size_t at) {
  SharedDeclaration found;
  found.first = first_of_declaration(file, at);
  size_t i = found.first;
  for (; !file.at(i).is(";"); ++i) {
    const Token& token = file.at(i);
    if (i >= file.size() || token.is("{")) {
      file.fail(file.at(at),
                "a __shared__ declaration whose type is defined in it, or that has initial values; "
                "define the type before it, and write the values in the kernel");
    }
    if (token.is("extern")) {
      found.is_extern = true;
    } else if (token.is("alignas") || token.is("__align__")) {
      if (!file.at(i + 1).is("(")) {
        file.fail(token, "expected ( after ", token.text);
      }
      const size_t close = file.closing(i + 1);
      found.alignment = std::string(file.between(i + 2, close));
      i = close;
    } else if (token.is("=")) {
      file.fail(file.at(at), "a __shared__ variable cannot have an initial value");
    } else if (!token.is("static") && !token.is("__shared__")) {
      found.rest.push_back(i);
    }
  }
  found.last = i;
  return found;
}

struct Declarator {
  std::string stars = {}, name = {}, extents = {};
  bool is_open = false;  // "[]"
  int line = 0;
};

// Splits the tokens of a declaration into its declarators.
class Declarators {
 public:
  Declarators(const Rewriter& file, const SharedDeclaration& declaration)
      : file_(file), rest_(declaration.rest) {}

  std::string type;
  std::vector<Declarator> list;

  void read() {
    size_t i = 0;
    const size_t name = first_name();
    for (; i < name && !token(i).is("*"); ++i) {
      type += (type.empty() ? "" : " ") + std::string(token(i).text);
    }
    while (i < rest_.size()) {
      i = read_one(i);
    }
  }

 private:
  const Token& token(size_t i) const {
    static const Token none;
    return i < rest_.size() ? file_.at(rest_[i]) : none;
  }
  // The first name outside of <> that is followed by a token that ends a declarator's name.
  size_t first_name() const {
    int angle = 0;
    for (size_t i = 0; i < rest_.size(); ++i) {
      angle += token(i).is("<") ? 1 : token(i).is(">") ? -1 : 0;
      const bool ends = i + 1 == rest_.size() || token(i + 1).is("[") || token(i + 1).is(",");
      if (i > 0 && angle == 0 && ends && token(i).kind == TokenKind::identifier) {
        return i;
      }
    }
    const Token none;
    file_.fail(rest_.empty() ? none : token(0),
               "a __shared__ declaration that the lab cannot read; write one as "
               "\"__shared__ float tile[32][33];\"");
  }
  size_t read_one(size_t i) {
    Declarator d;
    for (; token(i).is("*"); ++i) {
      d.stars += "*";
    }
    if (token(i).kind != TokenKind::identifier) {
      file_.fail(token(std::min(i, rest_.size() - 1)),
                 "a __shared__ declarator that the lab cannot read");
    }
    d.name = token(i).text;
    d.line = token(i).line;
    for (++i; token(i).is("[");) {
      const size_t open = rest_[i], close = file_.closing(open);
      d.is_open |= close == open + 1;
      d.extents += "[" + std::string(file_.between(open + 1, close)) + "]";
      while (i < rest_.size() && rest_[i] <= close) {
        ++i;
      }
    }
    if (i < rest_.size() && !token(i).is(",")) {
      file_.fail(token(i), "a __shared__ declarator that the lab cannot read");
    }
    list.push_back(std::move(d));
    return i + 1;
  }

  const Rewriter& file_;
  const std::vector<size_t>& rest_;
};

std::string definition_of(const Declarator& d, const std::string& type,
                          const SharedDeclaration& declaration, int id) {
  const std::string alignment = declaration.alignment.empty() ? "0" : declaration.alignment;
  if (declaration.is_extern) {
    return text(type, d.stars, "* const ", d.name, " = ::binade::lab::dynamic_shared<", type,
                d.stars, ", (", alignment, ")>(\"", d.name, "\");");
  }
  return text("auto& ", d.name, " = ::binade::lab::static_shared<", type, d.stars, " ", d.extents,
              ", (", alignment, "), ", id, ">(\"", d.name, "\");");
}

// The opening braces of the outermost function bodies.
std::vector<size_t> body_openings(const Rewriter& file) {
  std::vector<size_t> openings;
  for (size_t i = 0; i < file.size(); ++i) {
    if (!file.at(i).is("{") || i == 0) {
      continue;
    }
    const Token& before = file.at(i - 1);
    if (before.is(")") || before.is("noexcept") || before.is("const")) {
      openings.push_back(i);
      i = file.closing(i);
    }
  }
  return openings;
}

bool mentions(const Rewriter& file, size_t open, const std::string& name) {
  const size_t close = file.closing(open);
  for (size_t i = open; i < close; ++i) {
    if (file.at(i).is(name)) {
      return true;
    }
  }
  return false;
}

}  // namespace

void rewrite_shared(Rewriter& file, TranslationState& state) {
  const std::vector<size_t> bodies = body_openings(file);
  for (size_t i = 0; i < file.size(); ++i) {
    if (!file.at(i).is("__shared__")) {
      continue;
    }
    const SharedDeclaration declaration = read_declaration(file, i);
    Declarators declarators(file, declaration);
    declarators.read();
    std::string code, of_bodies;
    for (const Declarator& d : declarators.list) {
      if (declaration.is_extern != d.is_open || (d.is_open && d.extents != "[]")) {
        file.fail(file.at(i), declaration.is_extern
                                  ? "expected \"extern __shared__ T name[];\""
                                  : "a __shared__ array without a size is extern");
      }
      code += definition_of(d, declarators.type, declaration, state.shared_count++);
      state.result.shared_names.push_back(d.name);
    }
    const bool in_body = [&] {
      for (const size_t open : bodies) {
        if (open < i && i < file.closing(open)) {
          return true;
        }
      }
      return false;
    }();
    if (!in_body) {  // at namespace scope: define it in every function that uses it
      if (!declaration.is_extern) {
        file.fail(file.at(i), "a __shared__ variable outside of a function");
      }
      for (const size_t open : bodies) {
        if (open > i && mentions(file, open, declarators.list[0].name)) {
          file.insert_before(open + 1, code);
        }
      }
      code.clear();
    }
    file.replace(declaration.first, declaration.last, code);
    i = declaration.last;
  }
}

}  // namespace binade::lab
