// The collector: groups of findings by kind, kernel, array and lines.
#include <binade/kernels/host/findings_internal.h>

#include <mutex>
#include <unordered_map>
#include <unordered_set>

namespace binade::kernels::host {
namespace {

struct KeyHash {
  size_t operator()(const FindingKey& key) const {
    uint64_t hash = static_cast<uint64_t>(key.kind) + 1;
    for (const uint64_t part : {key.first, key.second, reinterpret_cast<uint64_t>(key.array)}) {
      hash = (hash ^ part) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

struct FindingGroup {
  Finding finding;
  std::unordered_set<const void*> elements;
  uint64_t last_launch = 0;
};

// Each instruction has its own key; several instructions of one line share a group.
struct FindingLog {
  std::mutex mutex;
  std::vector<FindingGroup> groups;
  std::unordered_map<std::string, size_t> by_text;
  std::unordered_map<FindingKey, size_t, KeyHash> by_key;
  void (*sink)(const Finding&) = nullptr;
};
FindingLog& finding_log() {
  static auto& log = *new FindingLog;
  return log;
}

// The text that the findings of one group share. The two lines come in the order of their text.
std::string group_text(const Finding& finding) {
  std::string first = to_string(finding.first.line), second = to_string(finding.second.line);
  if (second < first) {
    first.swap(second);
  }
  return text(static_cast<int>(finding.kind), '\n', finding.kernel, '\n', finding.element.array,
              '\n', first, '\n', second,
              finding.first.line.known() ? std::string() : finding.message);
}

void add_to(FindingGroup& group, uint64_t launch, const void* element) {
  ++group.finding.count;
  if (launch != group.last_launch) {
    group.last_launch = launch;
    ++group.finding.launches;
  }
  if (element != nullptr && group.elements.size() < Finding::kMostElements &&
      group.elements.insert(element).second) {
    group.finding.elements = group.elements.size();
  }
}

void add(const FindingKey* key, uint64_t launch, const void* element, Finding&& finding) {
  FindingLog& log = finding_log();
  void (*sink)(const Finding&) = nullptr;
  {
    const std::lock_guard lock(log.mutex);
    const auto [known, fresh] = log.by_text.emplace(group_text(finding), log.groups.size());
    if (key != nullptr) {
      log.by_key.emplace(*key, known->second);
    }
    if (!fresh) {
      FindingGroup& group = log.groups[known->second];
      group.finding.ended |= finding.ended;
      add_to(group, launch, element);
      return;
    }
    log.groups.push_back({finding, {}, launch});
    if (element != nullptr) {
      log.groups.back().elements.insert(element);
    }
    sink = log.sink;
  }
  if (sink != nullptr) {
    sink(finding);
  }
}

}  // namespace

bool count_again(const FindingKey& key, const Executor& x, const void* element) {
  FindingLog& log = finding_log();
  const std::lock_guard lock(log.mutex);
  const auto found = log.by_key.find(key);
  if (found == log.by_key.end()) {
    return false;
  }
  add_to(log.groups[found->second], x.launch, element);
  return true;
}

void add_finding(const FindingKey& key, const Executor& x, const void* element, Finding finding) {
  add(&key, x.launch, element, std::move(finding));
}
void add_finding(const Finding& finding) { add(nullptr, 0, nullptr, Finding(finding)); }

std::vector<Finding> findings() {
  FindingLog& log = finding_log();
  const std::lock_guard lock(log.mutex);
  std::vector<Finding> all;
  for (const FindingGroup& group : log.groups) {
    all.push_back(group.finding);
  }
  return all;
}

void reset_findings() {
  FindingLog& log = finding_log();
  const std::lock_guard lock(log.mutex);
  log.groups.clear();
  log.by_text.clear();
  log.by_key.clear();
}

void set_finding_sink(void (*sink)(const Finding&)) {
  FindingLog& log = finding_log();
  const std::lock_guard lock(log.mutex);
  log.sink = sink;
}

// Names -----------------------------------------------------------------------------------------

const char* name_of(FindingKind kind) {
  switch (kind) {
    case FindingKind::race: return "race";
    case FindingKind::missing_barrier: return "missing barrier";
    case FindingKind::missing_fence: return "missing fence";
    case FindingKind::copy_in_flight: return "copy in flight";
    case FindingKind::uninitialised_read: return "uninitialised read";
    case FindingKind::out_of_bounds: return "out of bounds";
    case FindingKind::misaligned: return "misaligned";
    case FindingKind::write_to_input: return "write to an input";
    case FindingKind::barrier_divergence: return "divergent barrier";
    case FindingKind::warp_divergence: return "divergent warp";
    case FindingKind::deadlock: return "deadlock";
    case FindingKind::step_limit: return "step limit";
    case FindingKind::undefined_math: return "undefined arithmetic";
    case FindingKind::bad_argument: return "bad argument";
    case FindingKind::exception: return "exception";
    case FindingKind::host_access: return "host access";
    case FindingKind::same_value_store: return "same-value store";
    case FindingKind::nondeterministic: return "non-deterministic";
    case FindingKind::bank_conflict: return "bank conflict";
    case FindingKind::uncoalesced: return "uncoalesced";
    case FindingKind::atomic_contention: return "atomic contention";
  }
  return "?";
}

const char* name_of(Severity severity) {
  switch (severity) {
    case Severity::unsafe: return "unsafe";
    case Severity::wrong: return "wrong";
    case Severity::warning: return "warning";
    case Severity::performance: return "performance";
  }
  return "?";
}

Severity severity_of(FindingKind kind) {
  switch (kind) {
    case FindingKind::uninitialised_read:
    case FindingKind::write_to_input:
    case FindingKind::undefined_math:
    case FindingKind::bad_argument: return Severity::wrong;
    case FindingKind::missing_fence:
    case FindingKind::same_value_store:
    case FindingKind::nondeterministic: return Severity::warning;
    case FindingKind::bank_conflict:
    case FindingKind::uncoalesced:
    case FindingKind::atomic_contention: return Severity::performance;
    default: return Severity::unsafe;
  }
}

const char* name_of(Remedy remedy) {
  switch (remedy) {
    case Remedy::none: return "";
    case Remedy::syncthreads: return "__syncthreads()";
    case Remedy::syncwarp: return "__syncwarp()";
    case Remedy::atomic: return "an atomic operation";
    case Remedy::fence: return "__threadfence() and atomics";
    case Remedy::fence_after: return "__threadfence() after the atomic operation";
    case Remedy::another_launch: return "a launch of its own";
    case Remedy::wait_for_copy: return "a wait for the copy";
  }
  return "";
}

std::string to_string(Coordinates at) { return text("(", at.x, ",", at.y, ",", at.z, ")"); }

std::string to_string(const FoundElement& element) {
  const char* space = element.space == MemorySpace::shared ? "shared memory" : "global memory";
  if (element.array.empty()) {
    return space;
  }
  if (element.padding) {
    return text(element.array, "'s padding (row ", element.row, ", column ", element.column, ")");
  }
  std::string out = text(element.array, "[", element.index, "]");
  if (element.index < 0 || element.index >= element.count) {
    out += text(" of ", element.count);
  }
  return out;
}

std::string to_string(const FindingLine& line) {
  if (!line.known()) {
    return "?";
  }
  const std::string place = text(line.file, ":", line.line);
  return line.inner_line == 0 ? place
                              : text(line.inner_file, ":", line.inner_line, " from ", place);
}

}  // namespace binade::kernels::host
