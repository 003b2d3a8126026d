// A line of the file is PROBLEM<TAB>CHOICE<TAB>REASON, the reason and its tab may be absent; if a
// problem has several lines, the last one counts.
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/tuning.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>

namespace binade::kernels {
namespace {

std::atomic<uint64_t> version{1};

std::string one_field(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
  return text;
}

struct Decision {
  std::string choice, reason;
};

class Table {
 public:
  Table() {
    if (const char* path = std::getenv("BINADE_TUNING")) {
      open(path);
    }
  }
  void open(const std::string& path) {
    ++version;
    entries_.clear();
    path_.clear();
    std::ifstream file(path);
    std::map<std::string, Decision> read;
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      const size_t tab = line.find('\t');
      check(tab != std::string::npos && tab > 0 && tab + 1 < line.size(), "tuning: ", path, ":",
            number, ": got \"", line, "\", expected a problem, a tab and a provider");
      const size_t second = std::min(line.find('\t', tab + 1), line.size());
      read[line.substr(0, tab)] = {line.substr(tab + 1, second - tab - 1),
                                   line.substr(std::min(second + 1, line.size()))};
    }
    entries_ = std::move(read);
    path_ = path;
  }
  std::string choice(const std::string& problem) const {
    const auto found = entries_.find(problem);
    return found == entries_.end() ? "" : found->second.choice;
  }
  void add(const std::string& problem, const Decision& decision) {
    Decision& entry = entries_[problem];
    if (!entry.choice.empty() && entry.choice != decision.choice) {
      ++version;
    }
    entry = decision;
    if (!path_.empty()) {
      std::ofstream file(path_, std::ios::app);
      file << problem << '\t' << decision.choice;
      if (!decision.reason.empty()) {
        file << '\t' << decision.reason;
      }
      file << '\n' << std::flush;
      check(file.good(), "tuning: cannot write ", path_, "; set BINADE_TUNING to another file");
    }
  }
  std::vector<TuningEntry> all() const {
    std::vector<TuningEntry> entries;
    for (const auto& [problem, decision] : entries_) {
      entries.push_back({problem, decision.choice, decision.reason});
    }
    return entries;
  }
  const std::string& path() const { return path_; }
  std::mutex mutex;

 private:
  std::map<std::string, Decision> entries_;
  std::string path_;
};

Table& table() {
  static Table instance;
  return instance;
}

}  // namespace

std::string tuning_choice(const std::string& problem) {
  const std::lock_guard lock(table().mutex);
  return table().choice(problem);
}

void add_tuning(const std::string& problem, const std::string& choice, const std::string& reason) {
  const std::lock_guard lock(table().mutex);
  table().add(one_field(problem), {one_field(choice), one_field(reason)});
}

std::vector<TuningEntry> tuning_table() {
  const std::lock_guard lock(table().mutex);
  return table().all();
}

void set_tuning_file(const std::string& path) {
  const std::lock_guard lock(table().mutex);
  table().open(path);
}

std::string tuning_file() {
  const std::lock_guard lock(table().mutex);
  return table().path();
}

uint64_t tuning_version() { return version; }

}  // namespace binade::kernels
