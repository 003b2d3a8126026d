#include <binade/lab/source/rewrite_internal.h>

#include <algorithm>

namespace binade::lab {

std::string_view Rewriter::between(size_t first, size_t end) const {
  const size_t begin = at(first).begin;
  const size_t stop = end < tokens_.size() ? tokens_[end].begin : source_.size();
  std::string_view text = first < end ? source_.substr(begin, stop - begin) : std::string_view();
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) {
    text.remove_suffix(1);
  }
  return text;
}

void Rewriter::replace(size_t first, size_t last, std::string text) {
  const size_t begin = tokens_[first].begin, end = tokens_[last].end();
  const auto lines = [](std::string_view s) { return std::count(s.begin(), s.end(), '\n'); };
  const auto missing = lines(source_.substr(begin, end - begin)) - lines(text);
  text.append(static_cast<size_t>(std::max<ptrdiff_t>(missing, 0)), '\n');
  edits_.push_back({begin, end, std::move(text)});
}

void Rewriter::insert_before(size_t token, std::string text) {
  const size_t begin = token < tokens_.size() ? tokens_[token].begin : source_.size();
  edits_.push_back({begin, begin, std::move(text)});
}

std::string Rewriter::result() const {
  std::vector<Edit> edits = edits_;
  std::stable_sort(edits.begin(), edits.end(),
                   [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
  std::string out;
  size_t done = 0;
  for (const Edit& edit : edits) {
    if (edit.begin < done) {
      continue;  // inside a part that another edit replaced
    }
    out += source_.substr(done, edit.begin - done);
    out += edit.text;
    done = edit.end;
  }
  out += source_.substr(done);
  return out;
}

size_t Rewriter::closing(size_t open) const {
  const std::string_view opening = tokens_[open].text;
  const std::string_view close = opening == "(" ? ")" : opening == "[" ? "]" : "}";
  int depth = 0;
  for (size_t i = open; i < tokens_.size(); ++i) {
    depth += tokens_[i].is(opening) ? 1 : tokens_[i].is(close) ? -1 : 0;
    if (depth == 0) {
      return i;
    }
  }
  fail(tokens_[open], "no ", close, " for this ", opening);
}

// The token before the "<" of template arguments that end at `last`. Parenthesised arguments may
// contain < and >.
size_t Rewriter::before_template_arguments(size_t last) const {
  int angle = 0, round = 0;
  for (size_t i = last + 1; i-- > 1;) {
    const Token& token = tokens_[i];
    round += token.is(")") ? 1 : token.is("(") ? -1 : 0;
    if (round == 0) {
      angle += token.is(">") ? 1 : token.is("<") ? -1 : 0;
    }
    if (angle == 0 && round == 0) {
      return i - 1;
    }
  }
  fail(tokens_[last], "expected the name of a kernel before <<<");
}

size_t Rewriter::begin_of_qualified(size_t last) const {
  size_t first = last;
  for (;;) {
    if (tokens_[first].is(">")) {
      first = before_template_arguments(first);
    }
    if (tokens_[first].kind != TokenKind::identifier) {
      fail(tokens_[last], "expected the name of a kernel before <<<");
    }
    if (first < 2 || !tokens_[first - 1].is("::")) {
      return first;
    }
    const Token& scope = tokens_[first - 2];
    if (scope.kind != TokenKind::identifier && !scope.is(">")) {
      return first - 1;
    }
    first -= 2;
  }
}

}  // namespace binade::lab
