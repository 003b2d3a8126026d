// Computes the cost of requests, and the rows of the report.
#include <binade/kernels/host/access_count.h>
#include <binade/kernels/host/findings_internal.h>
#include <binade/kernels/host/source_line.h>

#include <cstdio>

namespace binade::kernels::host {
namespace count {
namespace {

constexpr size_t kSector = 32, kBank = 4, kBanks = 32;

uint64_t pieces(uint64_t bytes, uint64_t size) { return (bytes + size - 1) / size; }

void count_global(const Request& request, Totals& totals) {
  std::map<uintptr_t, uint32_t> used;  // bytes of each sector, as a mask
  for_lanes(request.lanes, [&](int lane) {
    const uintptr_t begin = request.address[lane];
    for (uintptr_t byte = begin; byte < begin + request.bytes[lane]; ++byte) {
      used[byte / kSector] |= 1u << byte % kSector;
    }
  });
  totals.sectors = used.size();
  for (const auto& [sector, mask] : used) {
    totals.bytes_used += static_cast<uint64_t>(std::popcount(mask));
  }
  totals.ideal_sectors = pieces(totals.bytes_used, kSector);
}

// The different words of some lanes.
std::vector<uintptr_t> words_of(const Request& request, uint32_t lanes) {
  std::vector<uintptr_t> words;
  for_lanes(lanes, [&](int lane) {
    const uintptr_t last = request.address[lane] + request.bytes[lane] - 1;
    for (uintptr_t word = request.address[lane] / kBank; word <= last / kBank; ++word) {
      words.push_back(word);
    }
  });
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

// The largest number of different words in one bank.
uint64_t count_passes(const std::vector<uintptr_t>& words) {
  uint64_t of_bank[kBanks] = {};
  for (const uintptr_t word : words) {
    ++of_bank[word % kBanks];
  }
  return *std::max_element(std::begin(of_bank), std::end(of_bank));
}

// Shared memory serves a whole warp at once for 4 bytes per lane, half for 8, a quarter for 16.
void count_shared(const Request& request, Totals& totals) {
  uint32_t widest = 0;
  for_lanes(request.lanes, [&](int lane) {
    widest = std::max(widest, request.bytes[lane]);
    totals.bytes_used += request.bytes[lane];
  });
  const int together = widest <= 4 ? 32 : widest <= 8 ? 16 : 8;
  const uint32_t first = together == 32 ? ~0u : (1u << together) - 1;
  for (int lane = 0; lane < 32; lane += together) {
    totals.wavefronts += count_passes(words_of(request, request.lanes & first << lane));
  }
  totals.ideal_wavefronts = pieces(words_of(request, request.lanes).size(), kBanks);
}

// The largest number of lanes on one address.
uint64_t count_conflicts(const Request& request) {
  std::map<uintptr_t, uint64_t> lanes;
  uint64_t most = 0;
  for_lanes(request.lanes,
            [&](int lane) { most = std::max(most, ++lanes[request.address[lane]]); });
  return most;
}

}  // namespace

void Totals::add(const Totals& other) {
  requests += other.requests;
  lanes += other.lanes;
  possible_lanes += other.possible_lanes;
  sectors += other.sectors;
  ideal_sectors += other.ideal_sectors;
  bytes_used += other.bytes_used;
  wavefronts += other.wavefronts;
  ideal_wavefronts += other.ideal_wavefronts;
  conflicts += other.conflicts;
}

Totals totals_of(const Request& request, AccessKind kind, uint32_t present_lanes) {
  Totals totals;
  totals.requests = 1;
  totals.lanes = static_cast<uint64_t>(std::popcount(request.lanes));
  totals.possible_lanes = present_lanes;
  if (is_shared(kind)) {
    count_shared(request, totals);
  } else {
    count_global(request, totals);
  }
  if (is_atomic(kind)) {
    totals.conflicts = count_conflicts(request);
  }
  return totals;
}

// Touched bytes ---------------------------------------------------------------------------------

void TouchMap::touch(uintptr_t address, size_t bytes, bool reads, bool writes) {
  for (uintptr_t byte = address; byte < address + bytes; ++byte) {
    if (recent_ == nullptr || recent_number_ != byte / kPage) {
      auto& page = pages_[byte / kPage];
      if (page == nullptr) {
        page = std::make_unique<Bits>();
      }
      recent_ = page.get();
      recent_number_ = byte / kPage;
    }
    const size_t word = byte % kPage / 64;
    const uint64_t bit = uint64_t{1} << byte % 64;
    if (reads) {
      recent_->read_first[word] |= bit & ~(recent_->written[word] & ~recent_->read_first[word]);
      recent_->read[word] |= bit;
    }
    if (writes) {
      recent_->written[word] |= bit;
    }
  }
}

TouchedBytes TouchMap::in(uintptr_t begin, uintptr_t end) const {
  TouchedBytes touched;
  for (auto page = pages_.lower_bound(begin / kPage);
       page != pages_.end() && page->first * kPage < end; ++page) {
    for (size_t word = 0; word < kWords; ++word) {
      const uintptr_t first = page->first * kPage + word * 64;
      uint64_t mask = ~uint64_t{0};
      if (first < begin) {
        mask = begin - first >= 64 ? 0 : mask << (begin - first);
      }
      if (first + 64 > end) {
        mask &= first >= end ? 0 : ~uint64_t{0} >> (first + 64 - end);
      }
      const Bits& bits = *page->second;
      touched.read += static_cast<uint64_t>(std::popcount(bits.read[word] & mask));
      touched.read_first += static_cast<uint64_t>(std::popcount(bits.read_first[word] & mask));
      touched.written += static_cast<uint64_t>(std::popcount(bits.written[word] & mask));
    }
  }
  return touched;
}

void TouchMap::clear() {
  pages_.clear();
  recent_ = nullptr;
}

}  // namespace count

// Rows ------------------------------------------------------------------------------------------

namespace {

double ratio(uint64_t a, uint64_t b) {
  return b == 0 ? 0.0 : static_cast<double>(a) / static_cast<double>(b);
}

}  // namespace

const char* name_of(AccessKind kind) {
  switch (kind) {
    case AccessKind::global_read: return "global read";
    case AccessKind::global_write: return "global write";
    case AccessKind::global_atomic: return "global atomic";
    case AccessKind::shared_read: return "shared read";
    case AccessKind::shared_write: return "shared write";
    case AccessKind::shared_atomic: return "shared atomic";
  }
  return "?";
}

double AccessRow::sectors_per_request() const { return ratio(sectors, requests); }
double AccessRow::ideal_sectors_per_request() const { return ratio(ideal_sectors, requests); }
double AccessRow::used_share() const { return ratio(bytes_used, sectors * count::kSector); }
double AccessRow::wavefronts_per_request() const { return ratio(wavefronts, requests); }
double AccessRow::ideal_wavefronts_per_request() const { return ratio(ideal_wavefronts, requests); }
double AccessRow::contention() const { return ratio(conflicts, requests); }
double AccessRow::active_share() const { return ratio(lanes, possible_lanes); }

#if BINADE_HOST_RACE

namespace {

// True for sources that start the threads of a kernel: their reads are reads of its arguments.
bool starts_kernels(const std::string& file) {
  return file.ends_with("kernels/cuda/launch.cuh") || file.find("/bits/") != file.npos;
}

// Looks up all lines at once.
template <class Rows>
void look_up(const Rows& rows) {
  std::vector<const void*> instructions;
  for (const auto& [key, value] : rows) {
    if (const void* instruction = value.first.instruction()) {
      instructions.push_back(instruction);
    }
  }
  look_up_lines(instructions);
}

}  // namespace

std::vector<AccessRow> access_report() {
  const auto& accesses = count::counted().accesses;
  look_up(accesses);
  std::map<std::tuple<std::string, std::string, int, AccessKind>, count::Totals> rows;
  for (const auto& [key, value] : accesses) {
    const FindingLine line = value.first.line();
    if (starts_kernels(line.file)) {
      continue;
    }
    rows[{key.kernel, line.known() ? line.file : "?", line.line, key.kind}].add(value.second);
  }
  std::vector<AccessRow> report;
  for (const auto& [place, t] : rows) {
    const auto& [kernel, file, line, kind] = place;
    report.push_back({.kernel = kernel,
                      .file = file,
                      .line = line,
                      .kind = kind,
                      .requests = t.requests,
                      .lanes = t.lanes,
                      .possible_lanes = t.possible_lanes,
                      .sectors = t.sectors,
                      .ideal_sectors = t.ideal_sectors,
                      .bytes_used = t.bytes_used,
                      .wavefronts = t.wavefronts,
                      .ideal_wavefronts = t.ideal_wavefronts,
                      .conflicts = t.conflicts});
  }
  return report;
}

std::vector<ExecutionRow> execution_report() {
  const auto& executions = count::counted().executions;
  look_up(executions);
  std::map<std::tuple<std::string, std::string, int>, ExecutionRow> rows;
  for (const auto& [key, value] : executions) {
    const FindingLine line = value.first.line();
    ExecutionRow& row = rows[{key.first, line.file, line.line}];
    row.kernel = key.first;
    row.file = line.file;
    row.line = line.line;
    row.warps += value.second.warps;
    row.lanes += value.second.lanes;
    row.possible_lanes += value.second.possible_lanes;
  }
  std::vector<ExecutionRow> report;
  for (auto& [place, row] : rows) {
    if (row.warps > 0) {
      report.push_back(std::move(row));
    }
  }
  return report;
}

std::vector<TogetherRow> together_report() {
  std::vector<TogetherRow> report;
  for (const auto& [place, counted] : count::counted().together) {
    TogetherRow row = counted;
    std::tie(row.kernel, row.file, row.line, row.what) = place;
    report.push_back(std::move(row));
  }
  return report;
}

std::vector<LaunchRow> launch_report() {
  std::vector<LaunchRow> report;
  for (const auto& [kernel, launch] : count::counted().launches) {
    report.push_back(launch);
  }
  return report;
}

void reset_access_report() {
  count::Counted& counted = count::counted();
  counted.accesses.clear();
  counted.executions.clear();
  counted.together.clear();
  counted.launches.clear();
  counted.touched.clear();
}

TouchedBytes touched_bytes() { return count::counted().touched.in(0, UINTPTR_MAX); }
TouchedBytes touched_bytes(const void* begin, size_t bytes) {
  const auto from = reinterpret_cast<uintptr_t>(begin);
  return count::counted().touched.in(from, from + bytes);
}

#else

std::vector<AccessRow> access_report() { return {}; }
std::vector<ExecutionRow> execution_report() { return {}; }
std::vector<TogetherRow> together_report() { return {}; }
std::vector<LaunchRow> launch_report() { return {}; }
void reset_access_report() {}
TouchedBytes touched_bytes() { return {}; }
TouchedBytes touched_bytes(const void*, size_t) { return {}; }

#endif

std::vector<Finding> performance_findings(double factor) {
  std::vector<Finding> found;
  for (const AccessRow& row : access_report()) {
    const auto add = [&](FindingKind kind, double cost, double ideal, const char* what) {
      if (ideal <= 0 || cost < factor * ideal) {
        return;
      }
      Finding f;
      f.kind = kind;
      f.severity = severity_of(kind);
      f.kernel = row.kernel;
      f.first.act = is_atomic(row.kind) ? Act::atomic : Act::run;
      f.first.line = {row.file, row.line, "", 0};
      f.count = row.requests;
      char numbers[96];
      std::snprintf(numbers, sizeof numbers, "%.2f %s a request, %.2f would do", cost, what, ideal);
      f.message = text(row.file, ":", row.line, ": ", name_of(row.kind), ": ", numbers);
      found.push_back(std::move(f));
    };
    if (is_atomic(row.kind)) {
      add(FindingKind::atomic_contention, row.contention(), 1, "lanes on one address");
    } else if (is_shared(row.kind)) {
      add(FindingKind::bank_conflict, row.wavefronts_per_request(),
          row.ideal_wavefronts_per_request(), "passes");
    } else {
      add(FindingKind::uncoalesced, row.sectors_per_request(), row.ideal_sectors_per_request(),
          "sectors");
    }
  }
  return found;
}

}  // namespace binade::kernels::host
