// Settings: precision files and names, environments, lists of hosts.
#include <binade/core/precision/number_formats.h>
#include <binade/core/precision/precision_rules.h>
#include <binade/dist/job/discovery_internal.h>
#include <binade/dist/transport/delayed_transport.h>

#include <map>

#include "tests/fuzz/target_list_internal.h"

namespace binade::fuzz {
namespace {

std::string_view take_line(std::string_view& rest) {
  const size_t end = std::min(rest.find('\n'), rest.size());
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line;
}

}  // namespace

void parse_precision_file(Bytes bytes) {
  const MemoryFile file(bytes);
  const Precision precision = read_precision(file.path(), Precision::mixed(DType::f16));
  to_string(precision);
  const std::string text = to_json(precision);
  require(to_json(precision_of_json(text)) == text, "a policy is written as it was read");
  if (precision.rules) {
    precision.rules->find("softmax", OpClass::reduction, 0);
    precision.rules->find_module("encoder.0.norm");
    for (const PrecisionRule& rule : precision.rules->list()) {
      to_string(rule);
    }
  }
}

// Lines: a pattern of modules, a path, then names of policies.
void parse_precision_names(Bytes bytes) {
  std::string_view rest = text_of(bytes);
  const std::string_view pattern = take_line(rest), path = take_line(rest);
  const bool matches = matches_module(pattern, path);
  require(!matches || matches_module(pattern, std::string(path) + ".below"),
          "a pattern matches what is below");
  require(matches_module("**", path), "** matches every path");
  while (!rest.empty()) {
    const Precision precision = parse_precision(std::string(take_line(rest)));
    require(!to_string(precision).empty(), "a policy has a name");
  }
}

// Lines: number formats. What is printed is read back.
void parse_number_formats(Bytes bytes) {
  for (std::string_view rest = text_of(bytes); !rest.empty();) {
    const NumberFormat format = number_format(std::string(take_line(rest)));
    const std::string text = to_string(format);
    require(to_string(number_format(text)) == text, "a format is written as it was read");
    require(!format_page(format).empty(), "a format has a page");
    for (const double value : {0.0, -1.5, 1e30, 1e-30}) {
      format.decode(format.encode(value));
    }
  }
}

// The text of a policy, as checkpoints hold it.
void parse_policy(Bytes bytes) {
  const std::string text = to_json(precision_of_json(std::string(text_of(bytes))));
  require(to_json(precision_of_json(text)) == text, "a policy is written as it was read");
}

// Lines NAME=VALUE.
void parse_environment(Bytes bytes) {
  std::map<std::string, std::string> variables;
  for (std::string_view rest = text_of(bytes); !rest.empty();) {
    const std::string_view line = take_line(rest);
    const size_t equals = std::min(line.find('='), line.size());
    const std::string_view value = line.substr(std::min(equals + 1, line.size()));
    variables[std::string(line.substr(0, equals))] = std::string(value.substr(0, value.find('\0')));
  }
  const dist::ProcessInfo info = dist::discover([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
  require(info.rank >= 0 && info.rank < info.size && info.local_rank >= 0 &&
              info.local_rank < info.local_size && info.local_size <= info.size && info.port >= 0 &&
              info.port < 65536,
          "a rank is one of its job");
  const dist::LinkDelay link = dist::parse_link_delay(variables["BINADE_LINK_DELAY"]);
  require(link.latency >= 0 && link.bytes_per_second >= 0, "a link takes time");
}

void parse_slurm_names(Bytes bytes) {
  for (const int tasks : dist::slurm_tasks_per_node(text_of(bytes.first(bytes.size() / 2)))) {
    require(tasks >= 0, "tasks are counted");
  }
  for (const std::string& host : dist::slurm_hosts(text_of(bytes.subspan(bytes.size() / 2)))) {
    require(!host.empty(), "a host has a name");
  }
}

}  // namespace binade::fuzz
