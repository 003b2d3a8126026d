#include <binade/lab/source/rewrite_internal.h>
#include <binade/lab/source/subscript.h>

#include <algorithm>

namespace binade::lab {
namespace {

class Subscripts {
 public:
  explicit Subscripts(std::string_view source) : file_("", source) {}

  std::optional<Subscript> at(int line, size_t offset, int dimensions) const {
    const std::optional<size_t> bracket = bracket_at(line, offset, dimensions);
    if (!bracket) {
      return std::nullopt;
    }
    const std::optional<size_t> first = first_of_base(*bracket);
    if (!first) {
      return std::nullopt;
    }
    size_t name_end = *first;
    while (name_end < *bracket && !file_.at(name_end).is("[")) {
      ++name_end;
    }
    return Subscript{std::string(file_.between(*first, name_end)),
                     std::string(file_.between(*first, *bracket))};
  }

 private:
  bool is_index(size_t i) const {  // true for "[" that opens no attribute or capture
    return i > 0 && file_.at(i).is("[") &&
           (file_.at(i - 1).kind == TokenKind::identifier || file_.at(i - 1).is("]") ||
            file_.at(i - 1).is(")"));
  }
  // The bracket that opens the index.
  std::optional<size_t> bracket_at(int line, size_t offset, int dimensions) const {
    std::optional<size_t> only;
    size_t on_line = 0;
    for (size_t i = 0; i < file_.size(); ++i) {
      const Token& token = file_.at(i);
      if (token.begin == offset && token.is("]")) {
        return opening(i);
      }
      if (token.begin == offset && is_index(i)) {
        return i;
      }
      if (token.begin == offset && token.kind == TokenKind::identifier) {
        if (const std::optional<size_t> of_name = index_of(i, dimensions)) {
          return of_name;
        }
      }
      if (token.line == line && is_index(i)) {
        only = i;
        ++on_line;
      }
    }
    return on_line == 1 ? only : std::nullopt;
  }
  std::optional<size_t> opening(size_t close) const {
    int depth = 0;
    for (size_t i = close + 1; i-- > 0;) {
      depth += file_.at(i).is("]") ? 1 : file_.at(i).is("[") ? -1 : 0;
      if (depth == 0) {
        return i;
      }
    }
    return std::nullopt;
  }
  // The index after the name that leaves `dimensions` - 1 indices behind it.
  std::optional<size_t> index_of(size_t name, int dimensions) const {
    std::vector<size_t> indices;
    for (size_t i = name + 1; i < file_.size();) {
      if (file_.at(i).is("[")) {
        indices.push_back(i);
        i = closing(i) + 1;
      } else if (indices.empty() && (file_.at(i).is(".") || file_.at(i).is("::"))) {
        i += 2;
      } else {
        break;
      }
    }
    const auto left = static_cast<size_t>(std::max(dimensions, 1));
    return left <= indices.size() ? std::optional(indices[indices.size() - left]) : std::nullopt;
  }
  size_t closing(size_t open) const {
    int depth = 0;
    for (size_t i = open; i < file_.size(); ++i) {
      depth += file_.at(i).is("[") ? 1 : file_.at(i).is("]") ? -1 : 0;
      if (depth == 0) {
        return i;
      }
    }
    return file_.size();
  }
  // The start of the indexed expression: names joined by ".", "->" and "::", and their indices.
  std::optional<size_t> first_of_base(size_t bracket) const {
    size_t i = bracket;
    for (;;) {
      while (i > 0 && file_.at(i - 1).is("]")) {
        const std::optional<size_t> open = opening(i - 1);
        if (!open) {
          return std::nullopt;
        }
        i = *open;
      }
      if (i == 0 || file_.at(i - 1).kind != TokenKind::identifier) {
        return std::nullopt;
      }
      --i;
      if (i > 1 && (file_.at(i - 1).is(".") || file_.at(i - 1).is("::"))) {
        i -= 1;
      } else if (i > 2 && file_.at(i - 1).is(">") && file_.at(i - 2).is("-")) {
        i -= 2;
      } else {
        return i;
      }
    }
  }

  Rewriter file_;
};

// The offset of a line and column; the end of the source if there is no such line.
size_t offset_of(std::string_view source, int line, int column) {
  size_t begin = 0;
  for (int i = 1; i < line && begin < source.size(); ++i) {
    const size_t end = source.find('\n', begin);
    begin = end == std::string_view::npos ? source.size() : end + 1;
  }
  return column > 0 ? std::min(begin + static_cast<size_t>(column) - 1, source.size())
                    : source.size();
}

}  // namespace

std::optional<Subscript> subscript_at(std::string_view source, int line, int column,
                                      int dimensions) {
  return Subscripts(source).at(line, offset_of(source, line, column), dimensions);
}

}  // namespace binade::lab
