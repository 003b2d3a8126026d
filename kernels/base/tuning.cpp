// A line of the file is PROBLEM<TAB>CHOICE<TAB>REASON, the reason and its tab may be absent; if a
// problem has several lines, the last one counts.
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/provider.h>
#include <binade/kernels/base/tuning.h>
#include <binade/kernels/cuda/recent_cache_internal.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <optional>

namespace binade::kernels {
namespace {

std::atomic<uint64_t> version{1};

std::string one_field(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
  return text;
}

// Calls f(problem, decision) for each line of the file, which need not exist.
template <class F>
void each_line(const std::string& path, const F& f) {
  std::ifstream file(path);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const size_t tab = line.find('\t');
    check(tab != std::string::npos && tab > 0 && tab + 1 < line.size(), "tuning: ", path, ":",
          number, ": got \"", line, "\", expected a problem, a tab and a provider");
    const size_t second = std::min(line.find('\t', tab + 1), line.size());
    f(line.substr(0, tab), TuningDecision{line.substr(tab + 1, second - tab - 1),
                                          line.substr(std::min(second + 1, line.size()))});
  }
}

class Table {
 public:
  Table() {
    if (const char* path = std::getenv("BINADE_TUNING")) {
      open(path);
    }
  }
  void open(const std::string& path) {
    ++version;
    lines_ = {};
    path_.clear();
    dropped_ = false;
    try {
      each_line(path, [&](const std::string& problem, TuningDecision decision) {
        keep(problem, std::move(decision));
      });
    } catch (const Error&) {
      lines_ = {};
      throw;
    }
    path_ = path;
  }
  TuningLine find(const std::string& problem) {
    if (const TuningLine* known = lines_.find(problem)) {
      return *known;
    }
    if (path_.empty() || !dropped_) {
      return nullptr;
    }
    std::optional<TuningDecision> last;
    each_line(path_, [&](const std::string& other, TuningDecision decision) {
      if (other == problem) {
        last = std::move(decision);
      }
    });
    return last ? keep(problem, std::move(*last)) : nullptr;
  }
  TuningLine add(const std::string& problem, const TuningDecision& decision) {
    const TuningLine* known = lines_.find(problem);
    if (known && (*known)->choice != decision.choice) {
      ++version;
    }
    TuningLine line = keep(problem, decision);
    if (!path_.empty()) {
      std::ofstream file(path_, std::ios::app);
      file << problem << '\t' << decision.choice;
      if (!decision.reason.empty()) {
        file << '\t' << decision.reason;
      }
      file << '\n' << std::flush;
      check(file.good(), "tuning: cannot write ", path_, "; set BINADE_TUNING to another file");
    }
    return line;
  }
  std::vector<TuningEntry> all() const {
    std::vector<TuningEntry> entries;
    lines_.each([&](const std::string& problem, const TuningLine& line) {
      entries.push_back({problem, line->choice, line->reason});
    });
    return entries;
  }
  const std::string& path() const { return path_; }
  std::mutex mutex;

 private:
  TuningLine keep(const std::string& problem, TuningDecision decision) {
    const auto line = std::make_shared<const TuningDecision>(std::move(decision));
    if (TuningLine* known = lines_.find(problem)) {
      return *known = line;
    }
    const auto unused = [](const TuningLine& other) { return other.use_count() == 1; };
    while (lines_.take_beyond(kTuningLines * plan_limit() - 1, unused)) {
      dropped_ = true;
    }
    return lines_.add(problem, line);
  }

  RecentCache<std::string, TuningLine> lines_;
  std::string path_;
  bool dropped_ = false;  // the file may have problems that are not in lines_
};

Table& table() {
  static Table instance;
  return instance;
}

}  // namespace

TuningLine find_tuning(const std::string& problem) {
  const std::lock_guard lock(table().mutex);
  return table().find(problem);
}

TuningLine add_tuning(const std::string& problem, const std::string& choice,
                      const std::string& reason) {
  const std::lock_guard lock(table().mutex);
  return table().add(one_field(problem), {one_field(choice), one_field(reason)});
}

std::string tuning_choice(const std::string& problem) {
  const TuningLine line = find_tuning(problem);
  return line ? line->choice : "";
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
