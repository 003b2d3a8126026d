// CsvDataset: a table of numbers, categories and text in a CSV file (RFC 4180).
//
//   data::CsvDataset flowers("iris.csv", {.columns = {{"species", data::CsvType::category}},
//                                         .targets = {"species"}});
//   batch["x"]   // [N, 4] f32: all other columns
//   batch["y"]   // [N] i64; flowers.categories("species") has the names
#pragma once
#include <binade/data/checksums.h>
#include <binade/data/dataset.h>

namespace binade::data {

enum class CsvType : uint8_t {
  number,    // f32
  number64,  // f64
  integer,   // i64
  category,  // i64: the place of the cell's text in the list of categories
  text,      // u8 [bytes], of a length of its own: see Padding
  ignore,
};

struct CsvColumn {
  std::string name;
  CsvType type = CsvType::number;
  std::optional<double> missing =
      std::nullopt;  // replaces a missing value; without it a missing value is an error
  // The texts of a category. Empty: all of the column, sorted bytewise; a missing one is an error.
  std::vector<std::string> categories = {};
};

// A field of the samples. Several columns need one type and give a vector [columns]; so does a
// single number. A single integer or category is a scalar, a text is its bytes.
struct CsvField {
  std::string name;
  std::vector<std::string> columns;
};

struct CsvOptions {
  std::vector<CsvColumn> columns = {};  // all others are numbers
  // The field "y". All other numbers are the field "x"; a column of another type is a field under
  // its own name.
  std::vector<std::string> targets = {};
  std::vector<CsvField> fields = {};  // instead of that; columns in none are left out
  bool header = true;                 // the first record has the names; else they are "1", "2", ...
  char separator = ',';
  std::vector<std::string> missing_texts = {"", "NA", "N/A", "nan", "NaN", "null", "NULL", "?"};
  int64_t max_bytes = int64_t(16) << 30;  // of the file
  Checksums checksums = Checksums::if_present;
};

class CsvTable;

// Cells may be quoted: "a, ""b""" is the text a, "b", and may hold line breaks. Records end with
// "\n" or "\r\n"; empty lines are skipped; a byte order mark is skipped. The file is read once and
// kept as numbers. A record with a wrong cell, or with another number of cells than the header, is
// a sample that cannot be read; its error names FILE:LINE:COLUMN (counted from 1) and the column's
// name. Throws Error if the file cannot be read, ends within quotes, has no records or names a
// column twice, or if the options name a column that does not exist.
class CsvDataset : public Dataset {
 public:
  explicit CsvDataset(const std::string& path, CsvOptions options = {});

  int64_t size() const override;
  Sample get(int64_t index) const override;
  int channels() const override { return 0; }
  // Counts the categories if the field "labels", or else "y", is one category.
  int64_t class_count() const override;
  std::vector<std::string> class_names() const override;
  std::string describe(int64_t index) const override;  // "iris.csv:17"
  uint64_t id(int64_t index) const override;           // of the record's values
  std::optional<int64_t> label(int64_t index) const override;
  std::optional<int64_t> length(int64_t index, std::string_view field) const override;
  bool in_memory() const override { return true; }

  const std::vector<std::string>& column_names() const;
  const std::vector<std::string>& categories(const std::string& column) const;
  std::vector<std::string> field_names() const;
  // All rows of a field, for example to normalise it: [rows, columns] or [rows]. Throws the error
  // of the first wrong record, if there is one. A field of texts is an error.
  Tensor operator[](const std::string& field) const;
  // True if get() throws for this record.
  bool is_wrong(int64_t index) const;
  // All rows of a text field; empty texts for wrong records.
  const std::vector<std::string>& texts(const std::string& field) const;

 private:
  std::shared_ptr<const CsvTable> table_;
};

}  // namespace binade::data
