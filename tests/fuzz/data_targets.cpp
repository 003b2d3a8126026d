// Data sets: idx files, lines of text, checksum manifests, caches of listings.
#include <binade/data/checksums.h>
#include <binade/data/idx.h>
#include <binade/data/listing/listing_file_internal.h>
#include <binade/data/sets/csv_reader_internal.h>
#include <binade/data/text_lines.h>

#include <algorithm>
#include <cmath>

#include "tests/fuzz/target_list_internal.h"

namespace binade::fuzz {

void parse_idx(Bytes bytes) {
  constexpr int64_t kMost = 1 << 20;
  const MemoryFile file(bytes);
  const data::IdxArray array = data::read_idx(file.path(), {.max_bytes = kMost});
  auto count = static_cast<uint64_t>(array.element_bytes);
  for (const int64_t size : array.sizes) {
    count *= static_cast<uint64_t>(size);
  }
  require(!array.sizes.empty() && count == array.elements.size(), "an array has all its elements");
}

// Two bytes: the length of the file of images; that file, and the file of labels.
void parse_idx_set(Bytes bytes) {
  check(bytes.size() >= 2, "fuzz: no length");
  const size_t length = std::min<size_t>(size_t{bytes[0]} << 8 | bytes[1], bytes.size() - 2);
  const MemoryFile images(bytes.subspan(2, length)), labels(bytes.subspan(2 + length));
  constexpr int64_t kClasses = 10;
  const int64_t found = data::IdxDataset(images.path(), labels.path()).class_count();
  const data::IdxDataset set(images.path(), labels.path(), kClasses);
  require(found <= kClasses && set.class_count() == kClasses, "labels are below the classes");
  for (int64_t i = 0; i < set.size(); ++i) {
    require(set.label(i) < kClasses, "a label is a class");
  }
}

void parse_csv(Bytes bytes) {
  const data::Sample sample = data::csv_sample(text_of(bytes));
  require(sample.label >= 0 && !sample.values.empty(), "a row has a class and values");
}

// Records written with quotes around every cell are read back as they were.
void parse_csv_records(Bytes bytes) {
  const std::string text(text_of(bytes)), path = "fuzz.csv";
  data::CsvReader reader(text, path, ',');
  data::CsvRecord record;
  std::vector<std::vector<std::string>> records;
  std::string quoted;
  for (int64_t line = 0; reader.next(record); line = record.line) {
    require(record.line > line && record.cells.size() == record.lines.size(), "lines ascend");
    check(record.error.empty(), record.error);
    records.emplace_back(record.cells.begin(), record.cells.end());
    for (const std::string& cell : records.back()) {
      quoted += &cell == &records.back().front() ? "\"" : ",\"";
      for (const char c : cell) {
        quoted += c == '"' ? "\"\"" : std::string(1, c);
      }
      quoted += '"';
    }
    quoted += "\r\n";
  }
  data::CsvReader again(quoted, path, ',');
  for (const std::vector<std::string>& cells : records) {
    require(again.next(record) && record.error.empty(), "a written record is read");
    require(std::equal(cells.begin(), cells.end(), record.cells.begin(), record.cells.end()),
            "cells are as they were written");
  }
  require(!again.next(record), "no record is added");
}

void parse_text_lines(Bytes bytes) {
  const MemoryFile file(bytes);
  const data::TextLines lines({file.path(), file.path()}, data::csv_sample,
                              {.header_lines = static_cast<int>(bytes.size() % 3)});
  const auto reader = lines.open(0);
  std::string row;
  int64_t rows = 0;
  for (; reader->next(row); ++rows) {
    require(!row.empty() && row.find('\n') == std::string::npos, "a row is one line");
  }
  require(rows == lines.size() && lines.count_rows() == rows, "every epoch has the same rows");
  require(lines.describe(rows / 2).find(':') != std::string::npos || rows == 0,
          "a row has a file and a line");
}

void parse_checksums(Bytes bytes) {
  const auto manifest = data::ChecksumManifest::parse("/data", text_of(bytes));
  require(manifest.to_text() == text_of(bytes), "a manifest is written as it was read");
  for (const data::ChecksumEntry& entry : manifest.entries()) {
    require(manifest.find_file("/data/" + entry.name) == nullptr ||
                manifest.find_file("/data/" + entry.name)->sum == entry.sum,
            "a file has its own entry");
  }
}

void parse_listing(Bytes bytes) {
  const MemoryFile file(bytes);
  const data::ListingFile listing(file.path());
  std::string again = data::listing_head(listing.folders());
  for (const data::ListedFolder& folder : listing.folders()) {
    const std::string block = listing.block(folder);
    const auto entries = data::unpack_entries(file.path(), folder, block);
    for (const DirectoryEntry& entry : entries) {
      require(entry.name.find('/') == std::string::npos && entry.name != "..",
              "an entry is in its folder");
    }
    require(entries.size() == folder.entries, "a folder has all its entries");
    again += data::pack_entries(entries);
  }
  require(again == text_of(bytes), "a listing is written as it was read");
}

}  // namespace binade::fuzz
