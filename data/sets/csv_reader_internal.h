// CsvReader: the records of a CSV text (RFC 4180), one after another. Internal to CsvDataset.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace binade::data {

struct CsvRecord {
  int64_t line = 0;  // of its first byte, from 1
  std::vector<std::string_view> cells = {};
  std::vector<int64_t> lines = {};   // of each cell
  std::string error = {};            // of its form: "FILE:LINE:COLUMN: ..."
  std::deque<std::string> own = {};  // cells that differ from the file's bytes
};

class CsvReader {
 public:
  // `text` and `path` must outlive the reader; `path` is for messages. A byte order mark is
  // skipped.
  CsvReader(std::string_view text, const std::string& path, char separator);
  // The next record that is not an empty line; false at the end. Its cells are valid until the next
  // call. Throws Error if the text ends within quotes.
  bool next(CsvRecord& record);

 private:
  void read_cell(CsvRecord& record);
  std::string_view quoted(CsvRecord& record);
  void note(CsvRecord& record, const char* what) const;
  bool at_line_end() const;

  std::string_view text_;
  const std::string* path_;
  char separator_;
  size_t at_ = 0;
  int64_t line_ = 1;
};

}  // namespace binade::data
