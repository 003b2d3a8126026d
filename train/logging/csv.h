// Csv: a table for spreadsheets, RFC 4180: the columns step, epoch, then one for each name. Cells
// without a value are empty; numbers are in their shortest form that reads back equal, or nan, inf
// and -inf. Lines end in "\n". Texts, histograms and images are not written.
//
// A name that comes later becomes a column at the end, and the file is written again; if `columns`
// is set, a new name is an error. When the run is resumed, a line that a crash has cut goes to
// FILE.cut.
#pragma once
#include <binade/core/owned.h>
#include <binade/train/logging/logger.h>

namespace binade::train {

struct CsvOptions {
  std::string file = "log.csv";           // a relative path is in the run directory
  std::vector<std::string> columns = {};  // after step and epoch; empty: as they come
};

class Csv : public Logger {
 public:
  explicit Csv(CsvOptions options = {});
  ~Csv() override;
  Csv(Csv&&) noexcept;
  Csv& operator=(Csv&&) noexcept;

 private:
  void open(const LogStart& start) override;
  void write(const ScalarRecord& record) override;
  void close() override;

  class Table;
  CsvOptions options_;
  Owned<Table> table_;
};

}  // namespace binade::train
