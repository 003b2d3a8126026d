// The interface by which the race detector passes accesses to the access report, and the state of
// the report.
#pragma once
#include <binade/kernels/host/access_report.h>
#include <binade/kernels/host/place.h>
#include <binade/kernels/host/race.h>

#include <map>
#include <memory>
#include <tuple>

namespace binade::kernels::host::count {

void access(const Executor& x, const race::Access& access, Place place);
void basic_block(const Executor& x, Place place);
void begin_launch(const Executor& x);
void together(const Executor& x, const char* what, Site site, int lanes);
void end_block(const Executor& x);  // turns the accesses of the block into requests

// One request of a warp: the lanes that take part, and what each one asks for.
struct Request {
  uint32_t lanes = 0;
  uint32_t bytes[32] = {};
  uintptr_t address[32] = {};
};

// Sums over requests.
struct Totals {
  uint64_t requests = 0, lanes = 0, possible_lanes = 0;
  uint64_t sectors = 0, ideal_sectors = 0, bytes_used = 0;
  uint64_t wavefronts = 0, ideal_wavefronts = 0, conflicts = 0;
  void add(const Totals& other);
};
Totals totals_of(const Request& request, AccessKind kind, uint32_t present_lanes);

// The bytes that kernels have touched since the last reset.
class TouchMap {
 public:
  void touch(uintptr_t address, size_t bytes, bool reads, bool writes);
  TouchedBytes in(uintptr_t begin, uintptr_t end) const;
  void clear();

 private:
  static constexpr size_t kPage = 4096, kWords = kPage / 64;
  struct Bits {
    uint64_t read[kWords] = {}, read_first[kWords] = {}, written[kWords] = {};
  };
  std::map<uintptr_t, std::unique_ptr<Bits>> pages_;
  uintptr_t recent_number_ = 0;
  Bits* recent_ = nullptr;
};

// The counts since the last reset, by kernel and place.
struct Key {
  std::string kernel;
  uint32_t place;
  AccessKind kind;
  auto operator<=>(const Key&) const = default;
};
struct Counted {
  std::map<Key, std::pair<Place, Totals>> accesses;
  std::map<std::pair<std::string, uint32_t>, std::pair<Place, ExecutionRow>> executions;
  // By kernel, file, line and name.
  std::map<std::tuple<std::string, std::string, int, std::string>, TogetherRow> together;
  std::map<std::string, LaunchRow> launches;
  TouchMap touched;
};
Counted& counted();

}  // namespace binade::kernels::host::count
