// CsvTable: the columns of the fields of a CsvDataset. Internal to CsvDataset.
#pragma once
#include <binade/data/sets/csv_dataset.h>
#include <binade/data/sets/csv_reader_internal.h>

#include <map>
#include <set>
#include <unordered_map>

namespace binade::data {

class CsvTable {
 public:
  struct Field {
    std::string name;
    std::vector<size_t> columns;
    CsvType type = CsvType::number;
    bool scalar = false;                  // else [columns]
    std::vector<double> numbers = {};     // [rows, columns]; of number and number64
    std::vector<int64_t> integers = {};   // [rows, columns]; of integer and category
    std::vector<std::string> texts = {};  // [rows]
    Tensor values = {};                   // [rows, columns] or [rows]
  };

  // Reads the file twice: for the categories, then for the values.
  CsvTable(std::string path, CsvOptions options);

  std::string describe(int64_t row) const;
  const Field& field(const std::string& name) const;
  const Field* find(std::string_view name) const;
  const Field* class_field() const;
  size_t column(const std::string& name) const;
  // Throws the error of a wrong record.
  void check_row(int64_t row) const;
  void check_rows() const;

  std::string path;
  CsvOptions options;
  std::vector<std::string> names;
  std::vector<CsvColumn> columns;  // one per name
  std::vector<Field> fields;
  std::vector<int64_t> lines;            // of each record
  std::map<int64_t, std::string> wrong;  // errors by record

 private:
  void read_names(const CsvRecord& first);
  void choose_fields();
  void add_field(const std::string& name, const std::vector<std::string>& of);
  void find_categories(CsvReader reader);
  void read_record(const CsvRecord& record);
  void read_cell(const CsvRecord& record, size_t column, Field& field);
  double number(const CsvRecord& record, size_t column) const;
  int64_t integer(const CsvRecord& record, size_t column) const;
  bool is_missing(std::string_view cell) const;
  [[noreturn]] void reject(const CsvRecord& record, size_t column, const std::string& what) const;
  void make_tensors();

  size_t file_bytes_ = 0;
  std::unordered_map<std::string, size_t> places_;  // of the names
  std::set<std::string, std::less<>> missing_;
  std::vector<std::unordered_map<std::string, int64_t>> ids_;  // of each column's categories
};

}  // namespace binade::data
