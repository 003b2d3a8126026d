// CsvTable: cells to numbers, categories and texts.
#include <binade/core/tensor/create.h>
#include <binade/data/decode.h>
#include <binade/data/sets/csv_table_internal.h>
#include <binade/kernels/base/printable.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace binade::data {
namespace {

constexpr size_t kMostSpare = size_t{1} << 20;  // values of wrong records

std::string_view trimmed(std::string_view cell) {
  const size_t begin = cell.find_first_not_of(" \t");
  return begin == std::string_view::npos
             ? std::string_view()
             : cell.substr(begin, cell.find_last_not_of(" \t") - begin + 1);
}

// The cell as it stands in a message.
std::string shown(std::string_view cell) {
  constexpr size_t kShown = 40;
  return text("'", printable(cell.substr(0, kShown)), cell.size() > kShown ? "...'" : "'");
}

template <class T>
std::errc parse(std::string_view cell, T& value) {
  cell = trimmed(cell);
  cell.remove_prefix(cell.starts_with('+') && !cell.starts_with("+-") ? 1 : 0);
  const auto [stop, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return error == std::errc() && stop != cell.data() + cell.size() ? std::errc::invalid_argument
                                                                   : error;
}

const char* name_of(CsvType type) {
  constexpr const char* kNames[] = {"number", "number64", "integer", "category", "text", "ignore"};
  return kNames[static_cast<size_t>(type)];
}

// The first names; a file may have a million of them.
std::string printable_list(const std::vector<std::string>& names) {
  constexpr size_t kListed = 20, kShown = 60;
  std::string list;
  for (size_t i = 0; i < std::min(names.size(), kListed); ++i) {
    list += (list.empty() ? "" : ", ") + printable(std::string_view(names[i]).substr(0, kShown)) +
            (names[i].size() > kShown ? "..." : "");
  }
  return names.size() > kListed ? text(list, " and ", names.size() - kListed, " more") : list;
}

}  // namespace

CsvTable::CsvTable(std::string file, CsvOptions given)
    : path(std::move(file)), options(std::move(given)) {
  check(options.separator != '"' && options.separator != '\n' && options.separator != '\r',
        "csv: got a quote or a line end as the separator");
  missing_.insert(options.missing_texts.begin(), options.missing_texts.end());
  const std::vector<uint8_t> bytes = read_file(path, options.max_bytes);
  file_bytes_ = bytes.size();
  if (const std::optional<Checksum> sum = expected_checksum(path, options.checksums)) {
    verify_checksum(path, *sum, bytes);
  }
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const CsvReader beginning(all, path, options.separator);
  CsvReader reader = beginning;
  CsvRecord record;
  check(reader.next(record), printable(path), ": csv: the file has no records");
  check(record.error.empty(), record.error);
  read_names(record);
  choose_fields();
  if (!options.header) {
    reader = beginning;
  }
  find_categories(reader);
  while (reader.next(record)) {
    read_record(record);
  }
  check(!lines.empty(), printable(path), ": csv: the file has no records after its header");
  make_tensors();
}

std::string CsvTable::describe(int64_t row) const {
  check(row >= 0 && row < std::ssize(lines), "csv: got index ", row, ", expected one of ",
        lines.size());
  return text(path, ":", lines[static_cast<size_t>(row)]);
}

const CsvTable::Field* CsvTable::find(std::string_view name) const {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const Field& field) { return field.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

const CsvTable::Field& CsvTable::field(const std::string& name) const {
  const Field* found = find(name);
  std::vector<std::string> there;
  for (const Field& each : fields) {
    there.push_back(each.name);
  }
  check(found != nullptr, printable(path), ": csv: got no field '", name,
        "', expected one of: ", printable_list(there));
  return *found;
}

const CsvTable::Field* CsvTable::class_field() const {
  const Field* labels = find("labels");
  const Field* chosen = labels != nullptr ? labels : find("y");
  return chosen != nullptr && chosen->type == CsvType::category && chosen->scalar ? chosen
                                                                                  : nullptr;
}

size_t CsvTable::column(const std::string& name) const {
  const auto found = places_.find(name);
  if (found == places_.end()) {
    fail(printable(path), ": csv: got no column '", printable(name),
         "', expected one of: ", printable_list(names));
  }
  return found->second;
}

void CsvTable::check_row(int64_t row) const {
  const auto found = wrong.find(row);
  check(found == wrong.end(), found == wrong.end() ? "" : found->second);
}

void CsvTable::check_rows() const {
  check(wrong.empty(), wrong.empty() ? "" : wrong.begin()->second,
        wrong.size() > 1 ? text(" (", wrong.size(), " records are wrong)") : "");
}

void CsvTable::read_names(const CsvRecord& first) {
  for (size_t i = 0; i < first.cells.size(); ++i) {
    names.push_back(options.header ? std::string(first.cells[i]) : text(i + 1));
    check(places_.emplace(names.back(), i).second, printable(path), ":", first.line, ":", i + 1,
          ": csv: the header names column '", printable(names.back()), "' twice");
    columns.push_back({.name = names.back()});
  }
  std::set<std::string> seen;
  for (const CsvColumn& given : options.columns) {
    columns[column(given.name)] = given;
    check(seen.insert(given.name).second, "csv: got column '", printable(given.name), "' twice");
  }
}

void CsvTable::add_field(const std::string& name, const std::vector<std::string>& of) {
  check(!name.empty() && !of.empty(), "csv: got field '", name, "' of ", of.size(),
        " columns, expected a name and at least one column");
  check(find(name) == nullptr, "csv: got the field '", name,
        "' twice; rename one in "
        "CsvOptions::fields");
  Field field{.name = name, .columns = {}};
  for (const std::string& each : of) {
    const size_t index = column(each);
    const CsvType type = columns[index].type;
    check(type != CsvType::ignore, "csv: column '", printable(each), "' is ignored, but field '",
          name, "' needs it");
    field.type = field.columns.empty() ? type : field.type;
    check(type == field.type && (type != CsvType::text || field.columns.empty()), "csv: field '",
          name, "' has columns of the types ", name_of(field.type), " and ", name_of(type),
          ", expected one type, and a single column of text; make it several fields");
    field.columns.push_back(index);
  }
  field.scalar = field.columns.size() == 1 &&
                 (field.type == CsvType::integer || field.type == CsvType::category);
  fields.push_back(std::move(field));
}

void CsvTable::choose_fields() {
  check(options.fields.empty() || options.targets.empty(),
        "csv: got fields and targets, expected one of them: name the targets in a field");
  for (const CsvField& field : options.fields) {
    add_field(field.name, field.columns);
  }
  if (!options.fields.empty()) {
    return;
  }
  std::vector<std::string> numbers, others;
  for (const CsvColumn& each : columns) {
    const auto& targets = options.targets;
    if (each.type != CsvType::ignore &&
        std::find(targets.begin(), targets.end(), each.name) == targets.end()) {
      (each.type == CsvType::number ? numbers : others).push_back(each.name);
    }
  }
  if (!numbers.empty()) {
    add_field("x", numbers);
  }
  if (!options.targets.empty()) {
    add_field("y", options.targets);
  }
  for (const std::string& name : others) {
    add_field(name, {name});
  }
  check(!fields.empty(), printable(path), ": csv: all columns are ignored");
}

bool CsvTable::is_missing(std::string_view cell) const { return missing_.contains(trimmed(cell)); }

void CsvTable::find_categories(CsvReader reader) {
  ids_.resize(columns.size());
  std::vector<size_t> open;  // columns whose categories are those of the file
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].type == CsvType::category && columns[i].categories.empty()) {
      open.push_back(i);
    }
  }
  std::vector<std::set<std::string, std::less<>>> found(columns.size());
  CsvRecord record;
  while (!open.empty() && reader.next(record)) {
    const bool right = record.error.empty() && record.cells.size() == columns.size();
    for (size_t i = 0; i < open.size() && right; ++i) {
      const std::string_view cell = record.cells[open[i]];
      auto& texts = found[open[i]];
      if (!is_missing(cell) && !texts.contains(cell)) {
        texts.emplace(cell);
      }
    }
  }
  for (const size_t i : open) {
    columns[i].categories.assign(found[i].begin(), found[i].end());
  }
  for (size_t i = 0; i < columns.size(); ++i) {
    for (const std::string& category : columns[i].categories) {
      const auto id = static_cast<int64_t>(ids_[i].size());
      check(ids_[i].emplace(category, id).second, "csv: got category '", printable(category),
            "' of column '", printable(names[i]), "' twice");
    }
  }
}

void CsvTable::reject(const CsvRecord& record, size_t at, const std::string& what) const {
  fail(printable(path), ":", record.lines[at], ":", at + 1, ": column '", printable(names[at]),
       "': ", what);
}

double CsvTable::number(const CsvRecord& record, size_t at) const {
  const std::string_view cell = record.cells[at];
  const CsvColumn& of = columns[at];
  if (is_missing(cell)) {
    if (!of.missing) {
      reject(record, at,
             text("the value is missing (", shown(cell),
                  "); give CsvColumn::missing to use another one"));
    }
    return *of.missing;
  }
  double value = 0;
  const std::errc error = parse(cell, value);
  const bool narrow =
      of.type == CsvType::number && std::isfinite(value) && std::isinf(static_cast<float>(value));
  if (error == std::errc::result_out_of_range || narrow) {
    reject(record, at,
           text("got ", shown(cell), ", which is outside of the range of ",
                narrow ? "f32; use CsvType::number64" : "f64"));
  }
  if (error != std::errc()) {
    reject(record, at,
           text("got ", shown(cell),
                ", expected a number; set CsvColumn::type if the column has another "
                "kind of values"));
  }
  return value;
}

int64_t CsvTable::integer(const CsvRecord& record, size_t at) const {
  const std::string_view cell = record.cells[at];
  const CsvColumn& of = columns[at];
  if (of.type == CsvType::category) {
    const auto found = ids_[at].find(std::string(cell));
    if (found != ids_[at].end()) {
      return found->second;
    }
  }
  if (is_missing(cell)) {
    if (!of.missing || *of.missing != std::floor(*of.missing) || std::abs(*of.missing) > 0x1p53) {
      reject(record, at,
             text("the value is missing (", shown(cell),
                  "); give CsvColumn::missing, a whole number, to use another one"));
    }
    return static_cast<int64_t>(*of.missing);
  }
  if (of.type == CsvType::category) {
    reject(record, at,
           text("got ", shown(cell), ", expected one of the ", of.categories.size(),
                " categories: ", printable_list(of.categories)));
  }
  int64_t value = 0;
  if (parse(cell, value) != std::errc()) {
    reject(record, at, text("got ", shown(cell), ", expected an integer of 64 bits"));
  }
  return value;
}

void CsvTable::read_cell(const CsvRecord& record, size_t at, Field& field) {
  switch (field.type) {
    case CsvType::number:
    case CsvType::number64: field.numbers.push_back(number(record, at)); break;
    case CsvType::text: field.texts.emplace_back(record.cells[at]); break;
    default: field.integers.push_back(integer(record, at));
  }
}

void CsvTable::read_record(const CsvRecord& record) {
  lines.push_back(record.line);
  const size_t rows = lines.size();
  try {
    check(record.error.empty(), record.error);
    check(record.cells.size() == names.size(), printable(path), ":", record.line, ":",
          std::min(record.cells.size(), names.size()) + 1, ": got ", record.cells.size(),
          " cells, expected ", names.size(), " as in the ",
          options.header ? "header" : "first record");
    for (Field& field : fields) {
      for (const size_t at : field.columns) {
        read_cell(record, at, field);
      }
    }
  } catch (const OutOfMemory&) {
    throw;
  } catch (const Error& error) {
    wrong.emplace(static_cast<int64_t>(rows) - 1, error.what());
    // A right record has a byte for each cell. One that lacks its cells takes their memory too.
    if (wrong.size() * names.size() > file_bytes_ + kMostSpare) {
      check_rows();
    }
  }
  for (Field& field : fields) {  // also those that a wrong cell left out
    const bool real = field.type == CsvType::number || field.type == CsvType::number64;
    const size_t values = rows * field.columns.size();
    field.numbers.resize(real ? values : 0);
    field.integers.resize(real || field.type == CsvType::text ? 0 : values);
    field.texts.resize(field.type == CsvType::text ? rows : 0);
  }
}

void CsvTable::make_tensors() {
  const auto rows = static_cast<int64_t>(lines.size());
  for (Field& field : fields) {
    if (field.type == CsvType::text) {
      continue;
    }
    Dims sizes = {rows};
    if (!field.scalar) {
      sizes.push_back(static_cast<int64_t>(field.columns.size()));
    }
    if (field.type == CsvType::number) {
      field.values = from_values(field.numbers, sizes);
    } else if (field.type == CsvType::number64) {
      field.values = Tensor::from(field.numbers, sizes);
    } else {
      field.values = Tensor::from(field.integers, sizes);
    }
    field.numbers = {};
    field.integers = {};
  }
}

}  // namespace binade::data
