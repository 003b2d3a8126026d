// CsvDataset: samples of the rows of a CsvTable.
#include <binade/core/io/hash64.h>
#include <binade/data/fields_internal.h>
#include <binade/data/sets/csv_table_internal.h>

namespace binade::data {
namespace {

Tensor text_tensor(const std::string& text) {
  return Tensor::from(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()),
                      {static_cast<int64_t>(text.size())});
}

}  // namespace

CsvDataset::CsvDataset(const std::string& path, CsvOptions options)
    : table_(std::make_shared<CsvTable>(path, std::move(options))) {}

int64_t CsvDataset::size() const { return std::ssize(table_->lines); }

Sample CsvDataset::get(int64_t index) const {
  check(index >= 0 && index < size(), "csv: got index ", index, ", expected one of ", size());
  table_->check_row(index);
  Sample sample;
  for (const CsvTable::Field& field : table_->fields) {
    sample.fields.emplace_back(field.name,
                               field.type == CsvType::text
                                   ? text_tensor(field.texts[static_cast<size_t>(index)])
                                   : copy_row(field.values, index));
  }
  return sample;
}

int64_t CsvDataset::class_count() const { return std::ssize(class_names()); }

std::vector<std::string> CsvDataset::class_names() const {
  const CsvTable::Field* field = table_->class_field();
  return field == nullptr ? std::vector<std::string>{}
                          : table_->columns[field->columns.front()].categories;
}

std::string CsvDataset::describe(int64_t index) const { return table_->describe(index); }

uint64_t CsvDataset::id(int64_t index) const {
  Hash64 hash;
  const auto wrong = table_->wrong.find(index);
  if (wrong != table_->wrong.end()) {
    hash.add("wrong");
    hash.add(static_cast<uint64_t>(index));
    return hash.value();
  }
  for (const auto& [name, tensor] : get(index).fields) {
    hash.add(name);
    const size_t bytes = static_cast<size_t>(tensor.numel()) * size_of(tensor.dtype());
    hash.add(std::span(static_cast<const std::byte*>(tensor.view().data), bytes));
  }
  return hash.value();
}

std::optional<int64_t> CsvDataset::label(int64_t index) const {
  const CsvTable::Field* field = table_->class_field();
  return field == nullptr || table_->wrong.contains(index)
             ? std::nullopt
             : std::optional(field->values.data<int64_t>()[index]);
}

std::optional<int64_t> CsvDataset::length(int64_t index, std::string_view name) const {
  const CsvTable::Field* field = table_->find(name);
  if (field == nullptr || field->type != CsvType::text || table_->wrong.contains(index)) {
    return std::nullopt;
  }
  return std::ssize(field->texts[static_cast<size_t>(index)]);
}

const std::vector<std::string>& CsvDataset::column_names() const { return table_->names; }

const std::vector<std::string>& CsvDataset::categories(const std::string& column) const {
  const CsvColumn& found = table_->columns[table_->column(column)];
  check(found.type == CsvType::category, "csv: column '", column,
        "' is not a category; set CsvColumn::type");
  return found.categories;
}

std::vector<std::string> CsvDataset::field_names() const {
  std::vector<std::string> names;
  for (const CsvTable::Field& field : table_->fields) {
    names.push_back(field.name);
  }
  return names;
}

Tensor CsvDataset::operator[](const std::string& field) const {
  const CsvTable::Field& found = table_->field(field);
  check(found.type != CsvType::text, "csv: field '", field, "' is text; texts() has it");
  table_->check_rows();
  return found.values;
}

bool CsvDataset::is_wrong(int64_t index) const { return table_->wrong.contains(index); }

const std::vector<std::string>& CsvDataset::texts(const std::string& field) const {
  const CsvTable::Field& found = table_->field(field);
  check(found.type == CsvType::text, "csv: field '", field, "' is not text; [] has its values");
  return found.texts;
}

}  // namespace binade::data
