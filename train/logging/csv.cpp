#include <binade/train/logging/csv.h>
#include <binade/train/logging/log_text_internal.h>
#include <binade/train/run_directory.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

namespace binade::train {
namespace {

using Cells = std::vector<std::string>;

struct Line {
  Cells cells;
  std::string_view text;  // with its end
  bool is_whole = false;  // it has its end, and its quotes are closed
};

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) {
    return cell;
  }
  std::string out = "\"";
  for (const char c : cell) {
    out += c == '"' ? "\"\"" : std::string(1, c);
  }
  return out + '"';
}

// REQUIRES: there is a cell.
std::string line_of(const Cells& cells) {
  std::string line;
  for (const std::string& cell : cells) {
    line += quoted(cell) + ",";
  }
  line.back() = '\n';
  return line;
}

// The first line of `text`, which is not empty. Quoted cells may have ends of lines.
Line first_line(std::string_view text) {
  Line line;
  std::string cell;
  bool in_quotes = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool doubled = in_quotes && c == '"' && at + 1 < text.size() && text[at + 1] == '"';
    if (doubled) {
      cell += c;
      ++at;
    } else if (c == '"') {
      in_quotes = !in_quotes;
    } else if (in_quotes || (c != ',' && c != '\n')) {
      cell += c;
    } else {
      if (c == '\n' && cell.ends_with('\r')) {
        cell.pop_back();
      }
      line.cells.push_back(std::move(cell));
      cell.clear();
      if (c == '\n') {
        line.text = text.substr(0, at + 1);
        line.is_whole = true;
        return line;
      }
    }
  }
  line.text = text;
  return line;
}

std::string contents(const std::string& path, FileSystem& files) {
  std::string all;
  for (const std::string& line : read_lines(path, files)) {
    all += line;
  }
  return all;
}

std::string comma_list(const Cells& names) {
  std::string all;
  for (const std::string& name : names) {
    all += (all.empty() ? "" : ", ") + name;
  }
  return all;
}

constexpr size_t kFixed = 2;  // step, epoch

}  // namespace

class Csv::Table {
 public:
  Table(std::string path, Cells declared, const LogStart& start)
      : path_(std::move(path)),
        declared_(std::move(declared)),
        files_(*start.files),
        last_kept_(start.resumed ? start.step : int64_t{-1}) {}

  void append(const ScalarRecord& record) {
    check_declared(record);
    if (!is_whole_) {
      keep();
      is_whole_ = is_begun_ = true;
    }
    const bool is_new = columns_.empty();
    if (is_new) {
      columns_ = {"step", "epoch"};
      columns_.insert(columns_.end(), declared_.begin(), declared_.end());
    }
    const size_t before = columns_.size();
    const std::string row = line_of(row_of(record));
    is_whole_ = false;  // until the whole row is written
    if (is_new) {
      append_to_file(path_, line_of(columns_) + row, files_);
    } else if (columns_.size() > before) {
      write_file_durably(path_, widened() + row, files_);
    } else {
      append_to_file(path_, row, files_);
    }
    is_whole_ = true;
  }

  void sync() const {
    if (is_begun_) {
      sync_log(path_, files_);
    }
  }

 private:
  void check_declared(const ScalarRecord& record) const {
    const auto check_name = [this](const std::string& name) {
      check(declared_.empty() ||
                std::find(declared_.begin(), declared_.end(), name) != declared_.end(),
            "csv: got a value '", name, "', expected one of the declared columns ",
            comma_list(declared_), "; add it to them, or declare none");
    };
    for (const auto& [name, value] : record.values) {
      check_name(name);
    }
    for (const auto& [name, word] : record.words) {
      check_name(name);
    }
  }

  // The record's cells in the order of the columns; names without a column get one.
  Cells row_of(const ScalarRecord& record) {
    Cells row(columns_.size());
    const auto set = [&](const std::string& name, std::string cell) {
      const auto at = std::find(columns_.begin() + kFixed, columns_.end(), name);
      if (at != columns_.end()) {
        row[static_cast<size_t>(at - columns_.begin())] = std::move(cell);
      } else {
        columns_.push_back(name);
        row.push_back(std::move(cell));
      }
    };
    row[0] = std::to_string(record.step);
    row[1] = std::to_string(record.epoch);
    for (const auto& [name, value] : record.values) {
      set(name, shortest(value));
    }
    for (const auto& [name, word] : record.words) {
      set(name, word);
    }
    return row;
  }

  // The file with all columns.
  std::string widened() const {
    const std::string old = contents(path_, files_);
    std::string out = line_of(columns_);
    std::string_view rest = old;
    rest.remove_prefix(first_line(rest).text.size());
    while (!rest.empty()) {
      Line line = first_line(rest);
      rest.remove_prefix(line.text.size());
      line.cells.resize(columns_.size());
      out += line_of(line.cells);
    }
    return out;
  }

  // Cuts rows of later steps and a row without an end, and reads the columns.
  void keep() {
    const std::string all = contents(path_, files_);
    std::string kept, cut;
    columns_.clear();
    std::string_view rest = all;
    for (bool is_head = true; !rest.empty(); is_head = false) {
      const Line line = first_line(rest);
      rest.remove_prefix(line.text.size());
      const bool keeps = is_head ? keeps_head(line) : keeps_row(line);
      (keeps ? kept : cut) += line.text;
      if (is_head && keeps) {
        columns_ = line.cells;
      }
    }
    if (!cut.empty()) {
      write_new_file_durably(path_ + ".cut", cut, files_);
      write_file_durably(path_, kept, files_);
    }
  }

  bool keeps_head(const Line& line) const {
    if (!line.is_whole || (last_kept_ < 0 && !is_begun_)) {
      return false;
    }
    const Cells& cells = line.cells;
    check(cells.size() >= kFixed && cells[0] == "step" && cells[1] == "epoch", "csv: got ", path_,
          " with the columns ", comma_list(cells),
          ", expected step, epoch and others; give another file");
    check(declared_.empty() || Cells(cells.begin() + kFixed, cells.end()) == declared_, "csv: got ",
          path_, " with the columns ", comma_list(cells), ", expected step, epoch, ",
          comma_list(declared_), "; declare the same columns, or give another file");
    return true;
  }

  bool keeps_row(const Line& line) const {
    if (!line.is_whole || columns_.empty() || line.cells.size() != columns_.size()) {
      return false;
    }
    const std::string& cell = line.cells[0];
    int64_t step = 0;
    const auto [end, status] = std::from_chars(cell.data(), cell.data() + cell.size(), step);
    const bool is_step = status == std::errc() && end == cell.data() + cell.size();
    return is_step && (is_begun_ || step <= last_kept_);
  }

  std::string path_;
  Cells declared_;
  FileSystem& files_;
  int64_t last_kept_;      // step
  bool is_begun_ = false;  // rows of later steps are cut
  bool is_whole_ = false;  // the last row has its end
  Cells columns_;          // of the file; empty: it has none yet
};

Csv::Csv(CsvOptions options) : Logger("csv"), options_(std::move(options)) {
  check(!options_.file.empty(), name(), ": got no file, expected a path");
  Cells sorted = options_.columns;
  sorted.insert(sorted.end(), {"step", "epoch"});
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  check(twice == sorted.end(), name(), ": got the column '", twice == sorted.end() ? "" : *twice,
        "' twice, expected different ones beside step and epoch, which are there");
}
Csv::~Csv() = default;
Csv::Csv(Csv&&) noexcept = default;
Csv& Csv::operator=(Csv&&) noexcept = default;

void Csv::open(const LogStart& start) {
  table_ = std::make_unique<Table>(log_path(start, options_.file), options_.columns, start);
}
void Csv::write(const ScalarRecord& record) { table_->append(record); }
void Csv::close() { table_->sync(); }

}  // namespace binade::train
