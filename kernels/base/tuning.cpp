// A line of the file is PROBLEM<TAB>CHOICE; if a problem has several lines, the last one counts.
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/tuning.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>

namespace binade::kernels {
namespace {

class Table {
 public:
  Table() {
    if (const char* path = std::getenv("BINADE_TUNING")) {
      open(path);
    }
  }
  void open(const std::string& path) {
    entries_.clear();
    path_.clear();
    std::ifstream file(path);
    std::map<std::string, std::string> read;
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      const size_t tab = line.find('\t');
      check(tab != std::string::npos && tab > 0 && tab + 1 < line.size(), "tuning: ", path, ":",
            number, ": got \"", line, "\", expected a problem, a tab and a provider");
      read[line.substr(0, tab)] = line.substr(tab + 1);
    }
    entries_ = std::move(read);
    path_ = path;
  }
  std::string choice(const std::string& problem) const {
    const auto found = entries_.find(problem);
    return found == entries_.end() ? "" : found->second;
  }
  void add(const std::string& problem, const std::string& choice) {
    entries_[problem] = choice;
    if (!path_.empty()) {
      std::ofstream file(path_, std::ios::app);
      file << problem << '\t' << choice << '\n' << std::flush;
      check(file.good(), "tuning: cannot write ", path_, "; set BINADE_TUNING to another file");
    }
  }
  std::vector<TuningEntry> all() const {
    std::vector<TuningEntry> entries;
    for (const auto& [problem, choice] : entries_) {
      entries.push_back({problem, choice});
    }
    return entries;
  }
  std::mutex mutex;

 private:
  std::map<std::string, std::string> entries_;
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

void add_tuning(const std::string& problem, const std::string& choice) {
  const std::lock_guard lock(table().mutex);
  table().add(problem, choice);
}

std::vector<TuningEntry> tuning_table() {
  const std::lock_guard lock(table().mutex);
  return table().all();
}

void set_tuning_file(const std::string& path) {
  const std::lock_guard lock(table().mutex);
  table().open(path);
}

}  // namespace binade::kernels
