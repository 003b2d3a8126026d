#include <binade/kernels/host/findings_internal.h>
#include <binade/kernels/host/named_ranges.h>
#include <binade/kernels/host/schedules.h>

#include <cstring>
#include <map>

namespace binade::kernels::host {
namespace {

constexpr size_t kElement = 4;  // bytes that are compared and explained together

Finding difference(const void* address, const LastWriter& writer, const std::string& schedules) {
  Finding finding;
  finding.kind = FindingKind::nondeterministic;
  finding.severity = severity_of(finding.kind);
  finding.kernel = writer.kernel;
  finding.first = writer.side;
  finding.element = element_at(address);
  const std::string what =
      finding.element.array.empty() ? std::string("an output") : to_string(finding.element);
  finding.message = text("the bits of ", what, " differ between the schedules ", schedules);
  if (writer.side.act == Act::atomic) {
    finding.message += text(": the order of the atomics at ", writer.side.line);
  } else if (writer.side.act != Act::none) {
    finding.message += text(", last written at ", writer.side.line);
  }
  return finding;
}

// The differences of one schedule, by array and line of the last writer.
using Differences = std::map<std::pair<std::string, std::string>, Finding>;

void compare(const Compared& output, const std::vector<char>& expected,
             const std::string& schedules, Differences& found) {
  const char* begin = static_cast<const char*>(output.begin);
  for (size_t at = 0; at < output.bytes; at += kElement) {
    const size_t bytes = std::min(kElement, output.bytes - at);
    if (std::memcmp(begin + at, expected.data() + at, bytes) == 0) {
      continue;
    }
    const LastWriter writer = last_writer(begin + at);
    const auto [known, fresh] =
        found.try_emplace({element_at(begin + at).array, to_string(writer.side.line)});
    if (fresh) {
      known->second = difference(begin + at, writer, schedules);
    } else {
      ++known->second.count;
      ++known->second.elements;
    }
  }
}

}  // namespace

std::string to_string(const ScheduleOptions& schedule) {
  switch (schedule.schedule) {
    case Schedule::forward: return schedule.interleaved ? "interleaved" : "forward";
    case Schedule::reverse: return "reverse";
    case Schedule::random: break;
  }
  return text("random ", schedule.seed);
}

std::vector<ScheduleOptions> all_schedules(int random) {
  std::vector<ScheduleOptions> all = {
      {.schedule = Schedule::forward},
      {.schedule = Schedule::reverse, .late_async = false},
      {.schedule = Schedule::forward, .interleaved = true},
  };
  for (int i = 0; i < random; ++i) {
    all.push_back({.schedule = Schedule::random,
                   .seed = static_cast<uint64_t>(i) + 1,
                   .late_async = i % 2 == 1});
  }
  return all;
}

WithSchedule::WithSchedule(const ScheduleOptions& schedule)
    : options_(options()), checks_(check_options()) {
  options().schedule = schedule.schedule;
  options().seed = schedule.seed;
  options().late_async = schedule.late_async;
  check_options().interleaved = schedule.interleaved;
}
WithSchedule::~WithSchedule() {
  options() = options_;
  check_options() = checks_;
}

ScheduleReport compare_schedules(const std::vector<ScheduleOptions>& schedules,
                                 const std::vector<Compared>& outputs,
                                 const std::function<void()>& run) {
  ScheduleReport report;
  std::vector<std::vector<char>> expected;
  Differences differences;
  for (const ScheduleOptions& schedule : schedules) {
    const WithSchedule with(schedule);
    run();
    ++report.runs;
    if (expected.empty()) {
      for (const Compared& output : outputs) {
        const char* begin = static_cast<const char*>(output.begin);
        expected.emplace_back(begin, begin + output.bytes);
      }
      continue;
    }
    Differences found;
    for (size_t i = 0; i < outputs.size(); ++i) {
      compare(outputs[i], expected[i], text(schedules.front(), " and ", schedule), found);
    }
    differences.merge(found);  // keeps what an earlier schedule showed
  }
  for (const auto& [place, finding] : differences) {
    report.differences.push_back(finding);
    add_finding(finding);
  }
  return report;
}

#if !BINADE_HOST_RACE
LastWriter last_writer(const void*) { return {}; }
#endif

}  // namespace binade::kernels::host
