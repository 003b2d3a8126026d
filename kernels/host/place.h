// A place in the source as a small number: an instruction of a kernel, or a Site. The race build
// keeps one for every access it remembers. One OS thread at a time uses places.
#pragma once
#include <binade/kernels/host/executor_internal.h>

#include <unordered_map>
#include <vector>

namespace binade::kernels::host {

class Place {
 public:
  Place() = default;
  static Place of(const void* instruction) { return Place(number_of({instruction, -1})); }
  static Place of(Site site) { return Place(number_of({site.file, site.line})); }

  bool known() const { return number_ != 0; }
  uint32_t number() const { return number_; }
  bool operator==(const Place&) const = default;
  FindingLine line() const;
  // The instruction; null for a Site.
  const void* instruction() const;

 private:
  struct Entry {
    const void* instruction_or_file = nullptr;
    int line = 0;  // -1 for an instruction
    bool operator==(const Entry&) const = default;
  };
  struct Hash {
    size_t operator()(const Entry& entry) const { return hash(entry); }
  };
  static size_t hash(const Entry& entry) {
    return (reinterpret_cast<uintptr_t>(entry.instruction_or_file) +
            static_cast<unsigned>(entry.line)) *
               0x9e3779b97f4a7c15u >>
           32;
  }
  struct Table {
    std::vector<Entry> entries{1};  // entry 0 is no place
    std::unordered_map<Entry, uint32_t, Hash> numbers;
    static constexpr size_t kRecent = 1024;
    struct Recent {
      Entry entry;
      uint32_t number = 0;
    };
    std::vector<Recent> recent = std::vector<Recent>(kRecent);
  };
  static Table& table() {
    static auto& table = *new Table;
    return table;
  }

  explicit Place(uint32_t number) : number_(number) {}
  static uint32_t number_of(const Entry& entry) {
    Table& places = table();
    Table::Recent& recent = places.recent[hash(entry) % Table::kRecent];
    if (recent.entry != entry || recent.number == 0) {
      const auto [found, fresh] =
          places.numbers.emplace(entry, static_cast<uint32_t>(places.entries.size()));
      if (fresh) {
        places.entries.push_back(entry);
      }
      recent = {entry, found->second};
    }
    return recent.number;
  }

  uint32_t number_ = 0;
};

std::string to_string(Place place);

}  // namespace binade::kernels::host
