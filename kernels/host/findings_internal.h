// The collector of findings, for the sources of the executor.
#pragma once
#include <binade/kernels/host/executor_internal.h>
#include <binade/kernels/host/findings.h>

namespace binade::kernels::host {

// Identifies equal occurrences before any text is made: the same kind at the same two places, which
// are instructions or call sites, on the same array. Zero is no place.
struct FindingKey {
  FindingKind kind{};
  uint64_t first = 0, second = 0;
  const void* array = nullptr;  // the beginning of its range
  bool operator==(const FindingKey&) const = default;
};
// Counts one more occurrence of a known group; false if the key is new.
bool count_again(const FindingKey& key, const Executor& x, const void* element);
// Adds the first occurrence with this key.
void add_finding(const FindingKey& key, const Executor& x, const void* element, Finding finding);

// Parts of findings.
FindingLine line_of(Site site);
FindingLine line_of_instruction(const void* instruction);
// "softmax.cu:12", or "device.cuh:7 from softmax.cu:12" for an inlined helper.
std::string to_string(const FindingLine& line);
FindingSide side_of(const Executor& x, int thread, uint64_t block, Act act);

// The finding of an error of the current thread at a site, with the place where it runs.
Finding finding_here(const Executor& x, FindingKind kind, Site site, Act act);
// "kernel k, block (0,0,0), thread (1,0,0): ".
std::string where_of(const Executor& x);

// Ends the launch with a finding. The running fiber is abandoned: see die().
[[noreturn]] void die_with(Executor& x, Fiber& self, const FindingKey& key, Finding finding);
// True if a launch goes on after this kind of finding.
inline bool goes_on(const Executor& x) { return x.checks.collect_findings; }

}  // namespace binade::kernels::host
