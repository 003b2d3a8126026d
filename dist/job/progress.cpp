#include <binade/core/observe/text_table_internal.h>
#include <binade/dist/job/progress.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>

namespace binade::dist {
namespace {

using Clock = std::chrono::steady_clock;

std::string tenths(double seconds) { return text(std::round(seconds * 10) / 10, " s"); }

std::string state_of(const RankReport& report) {
  if (!report.state.empty()) {
    return report.state;
  }
  return report.where.sequence == 0 ? "before" : report.where.inside ? "in" : "after";
}

// The ranks that the others wait for: " (waiting for rank 2: no answer, rank 5: after #7)".
std::string late_ranks(const std::vector<RankReport>& ranks) {
  uint64_t latest = 0;
  for (const RankReport& report : ranks) {
    latest = std::max(latest, report.where.sequence);
  }
  std::string names;
  size_t count = 0;
  for (const RankReport& report : ranks) {
    const RankProgress& where = report.where;
    if (where.sequence == latest && where.inside && report.state.empty()) {
      continue;
    }
    if (++count <= 8) {
      names += text(names.empty() ? "" : ", ", "rank ", report.rank, ": ", state_of(report), " #",
                    where.sequence);
    }
  }
  return count == 0 || count == ranks.size()
             ? std::string()
             : text(" (waiting for ", names, count > 8 ? ", ..." : "", ")");
}

}  // namespace

struct Progress::State {
  mutable std::mutex mutex;
  RankProgress where;
  Clock::time_point since = Clock::now();
};

Progress::Progress() : state_(std::make_unique<State>()) {}
Progress::~Progress() = default;

void Progress::enter(const std::string& group, uint64_t sequence, const Signature& signature) {
  const std::lock_guard lock(state_->mutex);
  RankProgress& where = state_->where;
  where.sequence = sequence;
  where.signature = signature;
  where.inside = 1;
  const size_t length = std::min(group.size(), sizeof where.group - 1);
  std::memcpy(where.group, group.data(), length);
  where.group[length] = 0;
  state_->since = Clock::now();
}

void Progress::leave() {
  const std::lock_guard lock(state_->mutex);
  state_->where.inside = 0;
  state_->since = Clock::now();
}

void Progress::set_step(int64_t step) {
  const std::lock_guard lock(state_->mutex);
  state_->where.step = step;
}

RankProgress Progress::now() const {
  const std::lock_guard lock(state_->mutex);
  RankProgress where = state_->where;
  where.seconds = std::chrono::duration<double>(Clock::now() - state_->since).count();
  return where;
}

std::string rank_table(const std::string& cause, const std::vector<RankReport>& ranks) {
  std::vector<std::vector<std::string>> rows = {
      {"rank", "state", "collective", "for", "step", "process"}};
  for (const RankReport& report : ranks) {
    const RankProgress& where = report.where;
    const bool any = where.sequence > 0;
    rows.push_back({std::to_string(report.rank), state_of(report),
                    any ? text("#", where.sequence, " ", to_string(where.signature),
                               where.group[0] ? text(" of ", static_cast<const char*>(where.group))
                                              : std::string())
                        : "first collective",
                    tenths(where.seconds),
                    where.step < 0 ? std::string("-") : std::to_string(where.step),
                    report.process});
  }
  std::string table = cause + late_ranks(ranks) + "\n" + text_table(rows);
  table.pop_back();  // the end of the last line
  return table;
}

}  // namespace binade::dist
