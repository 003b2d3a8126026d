// Expands SLURM's compact lists.
#include <binade/dist/job/discovery_internal.h>
#include <binade/kernels/base/error.h>

#include <algorithm>
#include <charconv>

namespace binade::dist {
namespace {

constexpr size_t kMostHosts = size_t(1) << 20;

int64_t number(std::string_view digits, const char* what, std::string_view whole) {
  int64_t value = -1;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  check(error == std::errc() && stop == end && value >= 0 && digits.size() <= 9, what, ": got '",
        digits, "' in '", whole, "', expected a number");
  return value;
}

std::string padded(int64_t value, size_t width) {
  std::string digits = std::to_string(value);
  return digits.size() < width ? std::string(width - digits.size(), '0') + digits : digits;
}

// Appends to every prefix each entry of "001-003,7".
std::vector<std::string> expand(const std::vector<std::string>& prefixes, std::string_view ranges,
                                std::string_view whole) {
  std::vector<std::string> out;
  for (const std::string& prefix : prefixes) {
    for (size_t at = 0; at <= ranges.size();) {
      const size_t end = std::min(ranges.find(',', at), ranges.size());
      const std::string_view range = ranges.substr(at, end - at);
      const size_t dash = range.find('-');
      const std::string_view from = range.substr(0, dash),
                             to = dash == range.npos ? from : range.substr(dash + 1);
      const int64_t first = number(from, "SLURM hosts", whole),
                    last = number(to, "SLURM hosts", whole);
      check(first <= last && static_cast<size_t>(last - first) < kMostHosts - out.size(),
            "SLURM hosts: got the range '", range, "' in '", whole, "'");
      for (int64_t i = first; i <= last; ++i) {
        out.push_back(prefix + padded(i, from.size()));
      }
      at = end + 1;
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> slurm_hosts(std::string_view list) {
  std::vector<std::string> hosts, current = {""};
  const auto finish = [&] {
    for (std::string& host : current) {
      check(!host.empty(), "SLURM hosts: got an empty name in '", list, "'");
      hosts.push_back(std::move(host));
    }
    check(hosts.size() <= kMostHosts, "SLURM hosts: got more than ", kMostHosts, " in '", list,
          "'");
    current = {""};
  };
  for (size_t at = 0; at < list.size();) {
    if (list[at] == ',') {
      finish();
      ++at;
    } else if (list[at] == '[') {
      const size_t end = list.find(']', at);
      check(end != list.npos, "SLURM hosts: got '", list, "', expected ']' after '['");
      current = expand(current, list.substr(at + 1, end - at - 1), list);
      at = end + 1;
    } else {
      const size_t end = std::min(list.find_first_of(",[", at), list.size());
      for (std::string& host : current) {
        host += list.substr(at, end - at);
      }
      at = end;
    }
  }
  finish();
  return hosts;
}

std::vector<int> slurm_tasks_per_node(std::string_view text) {
  std::vector<int> tasks;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    const size_t times = part.find("(x");
    int64_t repeat = 1;
    if (times != part.npos) {
      check(part.back() == ')', "SLURM tasks per node: got '", text, "', expected 4(x2),3");
      repeat =
          number(part.substr(times + 2, part.size() - times - 3), "SLURM tasks per node", text);
    }
    const auto count = number(part.substr(0, times), "SLURM tasks per node", text);
    check(tasks.size() + static_cast<size_t>(repeat) <= kMostHosts, "SLURM tasks per node: got '",
          text, "'");
    tasks.insert(tasks.end(), static_cast<size_t>(repeat), static_cast<int>(count));
    at = end + 1;
  }
  return tasks;
}

}  // namespace binade::dist
