// CsvReader: the grammar of RFC 4180.
#include <binade/data/sets/csv_reader_internal.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/printable.h>

#include <algorithm>

namespace binade::data {

CsvReader::CsvReader(std::string_view text, const std::string& path, char separator)
    : text_(text), path_(&path), separator_(separator) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  at_ = text_.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
}

// True at "\n", "\r\n" and the end of the text.
bool CsvReader::at_line_end() const {
  return at_ == text_.size() || text_[at_] == '\n' || text_.substr(at_, 2) == "\r\n" ||
         (text_[at_] == '\r' && at_ + 1 == text_.size());
}

bool CsvReader::next(CsvRecord& record) {
  for (; at_ < text_.size() && at_line_end(); ++at_) {
    line_ += text_[at_] == '\n' ? 1 : 0;
  }
  record.cells.clear();
  record.lines.clear();
  record.error.clear();
  record.own.clear();
  record.line = line_;
  if (at_ == text_.size()) {
    return false;
  }
  read_cell(record);
  while (!at_line_end()) {
    ++at_;  // the separator
    read_cell(record);
  }
  return true;
}

void CsvReader::note(CsvRecord& record, const char* what) const {
  if (record.error.empty()) {
    record.error = text(printable(*path_), ":", line_, ":", record.cells.size() + 1, ": ", what);
  }
}

// Leaves at_ at the separator or the end of the line.
void CsvReader::read_cell(CsvRecord& record) {
  const int64_t line = line_;
  std::string_view cell;
  if (at_ < text_.size() && text_[at_] == '"') {
    cell = quoted(record);
  }
  const size_t begin = at_;
  while (!at_line_end() && text_[at_] != separator_) {
    ++at_;
  }
  const std::string_view plain = text_.substr(begin, at_ - begin);
  if (cell.data() == nullptr) {
    if (plain.find('"') != std::string_view::npos) {
      note(record,
           "got a quote within a cell that does not begin with one; put the cell in quotes "
           "and double the quote within");
    }
    cell = plain;
  } else if (!plain.empty()) {
    note(record,
         "got text after the closing quote, expected the separator or the end of the line; "
         "double a quote that is part of the cell");
  }
  record.cells.push_back(cell);
  record.lines.push_back(line);
}

// The text between quotes; leaves at_ after the closing one. Its data() is not null.
std::string_view CsvReader::quoted(CsvRecord& record) {
  const int64_t opened = line_;
  const size_t begin = ++at_;
  bool has_quotes = false;
  for (;; ++at_) {
    check(at_ < text_.size(), printable(*path_), ":", opened, ":", record.cells.size() + 1,
          ": csv: the file ends within the quotes that begin here");
    if (text_[at_] == '\n') {
      ++line_;
    } else if (text_[at_] == '"') {
      if (text_.substr(at_ + 1, 1) != "\"") {
        break;
      }
      ++at_;
      has_quotes = true;
    }
  }
  const std::string_view raw = text_.substr(begin, at_ - begin);
  ++at_;
  if (!has_quotes) {
    return raw;
  }
  std::string& cell = record.own.emplace_back();
  for (size_t i = 0; i < raw.size(); ++i) {
    cell += raw[i];
    i += raw[i] == '"' ? 1 : 0;
  }
  return cell;
}

}  // namespace binade::data
