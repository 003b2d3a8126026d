#include <binade/kernels/host/access_count.h>
#include <binade/kernels/host/access_report.h>
#include <binade/kernels/host/source_line.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>

namespace binade::kernels::host {
namespace {

// One instruction, or for primitives one Site (then `line` is not -1), and the kind of access.
struct Key {
  const void* instruction_or_file;
  int line;
  AccessKind kind;
  auto operator<=>(const Key&) const = default;
};

struct Request {
  uint32_t lanes = 0;
  uint32_t bytes[32] = {};
  uintptr_t address[32] = {};
};

// The executions of one instruction in this block so far.
struct Executions {
  std::vector<uint32_t> count = std::vector<uint32_t>(kMaxThreads);  // by thread
  std::vector<Request> requests[kMaxWarps];
};

struct Totals {
  uint64_t requests = 0, sectors = 0, bytes_used = 0, wavefronts = 0;
  void add(const Totals& other) {
    requests += other.requests;
    sectors += other.sectors;
    bytes_used += other.bytes_used;
    wavefronts += other.wavefronts;
  }
};

// A thread's last access, as stored in the request.
struct Last {
  Key key{};
  uint32_t k = 0;
  uintptr_t begin = 0, end = 0;
};

struct Counter {
  std::vector<Last> last = std::vector<Last>(kMaxThreads);
  std::map<Key, Executions> block;
  std::map<std::tuple<std::string, Key>, Totals> totals;  // by kernel
  std::map<std::string, LaunchRow> launches;
};
Counter& counter() {
  static auto& counter = *new Counter;
  return counter;
}

constexpr size_t kSector = 32, kBank = 4, kBanks = 32;

Totals count_global(const Request& request) {
  std::map<uintptr_t, uint32_t> used;  // bytes of each sector, as a mask
  for_lanes(request.lanes, [&](int lane) {
    const uintptr_t begin = request.address[lane];
    for (uintptr_t byte = begin; byte < begin + request.bytes[lane]; ++byte) {
      used[byte / kSector] |= 1u << byte % kSector;
    }
  });
  Totals totals{.requests = 1, .sectors = used.size()};
  for (const auto& [sector, mask] : used) {
    totals.bytes_used += static_cast<uint64_t>(std::popcount(mask));
  }
  return totals;
}

// Lanes served together: a whole warp for 4 bytes per lane, half a warp for 8, a quarter for 16.
// The number of passes is the largest number of different words in one bank.
uint64_t count_passes(const Request& request, uint32_t lanes) {
  std::vector<uintptr_t> words;
  for_lanes(lanes, [&](int lane) {
    const uintptr_t last = request.address[lane] + request.bytes[lane] - 1;
    for (uintptr_t word = request.address[lane] / kBank; word <= last / kBank; ++word) {
      words.push_back(word);
    }
  });
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  uint64_t of_bank[kBanks] = {};
  for (const uintptr_t word : words) {
    ++of_bank[word % kBanks];
  }
  return *std::max_element(std::begin(of_bank), std::end(of_bank));
}

Totals count_shared(const Request& request) {
  uint32_t widest = 0;
  Totals totals{.requests = 1};
  for_lanes(request.lanes, [&](int lane) {
    widest = std::max(widest, request.bytes[lane]);
    totals.bytes_used += request.bytes[lane];
  });
  const int together = widest <= 4 ? 32 : widest <= 8 ? 16 : 8;
  const uint32_t first = together == 32 ? ~0u : (1u << together) - 1;
  for (int lane = 0; lane < 32; lane += together) {
    totals.wavefronts += count_passes(request, request.lanes & first << lane);
  }
  return totals;
}

bool is_shared(AccessKind kind) {
  return kind == AccessKind::shared_read || kind == AccessKind::shared_write;
}

// The host compiler copies a struct of four floats as four floats. Adjacent accesses of one source
// line within 16 aligned bytes count as the one access that a GPU makes.
bool continues(const Last& last, const Key& key, uintptr_t address, size_t bytes) {
  constexpr uintptr_t kWidest = 16;
  return address == last.end && key != last.key && key.kind == last.key.kind && key.line < 0 &&
         last.key.line < 0 && last.begin / kWidest == (address + bytes - 1) / kWidest &&
         source_line(key.instruction_or_file).inner ==
             source_line(last.key.instruction_or_file).inner;
}

void note(const Executor& x, const race::Access& access, const void* place, int line) {
  if (access.kind == race::Kind::copy_landed || access.bytes == 0) {
    return;  // counted when it was issued; or empty
  }
  const bool shared = in_shared(x, access.address, access.bytes);
  const bool read = access.kind == race::Kind::read;
  const AccessKind kind = shared ? (read ? AccessKind::shared_read : AccessKind::shared_write)
                                 : (read ? AccessKind::global_read : AccessKind::global_write);
  const Key key{place, line, kind};
  const auto address = reinterpret_cast<uintptr_t>(access.address);
  const int lane = access.thread % 32;
  const auto warp = static_cast<size_t>(access.thread / 32);
  Last& last = counter().last[static_cast<size_t>(access.thread)];
  if (continues(last, key, address, access.bytes)) {
    counter().block[last.key].requests[warp][last.k].bytes[lane] +=
        static_cast<uint32_t>(access.bytes);
    last.end += access.bytes;
    return;
  }
  Executions& executions = counter().block[key];
  const uint32_t k = executions.count[static_cast<size_t>(access.thread)]++;
  auto& requests = executions.requests[warp];
  if (requests.size() <= k) {
    requests.resize(k + 1);
  }
  requests[k].lanes |= 1u << lane;
  requests[k].bytes[lane] = static_cast<uint32_t>(access.bytes);
  requests[k].address[lane] = address;
  last = {key, k, address, address + access.bytes};
}

// Splits "file:line".
std::pair<std::string, int> line_of(const Key& key) {
  if (key.line >= 0) {
    return {static_cast<const char*>(key.instruction_or_file), key.line};
  }
  const std::string& place = source_line(key.instruction_or_file).kernel;
  const size_t colon = place.rfind(':');
  return colon == std::string::npos
             ? std::pair{place, 0}
             : std::pair{place.substr(0, colon), std::atoi(place.c_str() + colon + 1)};
}

double ratio(double a, uint64_t b) { return b == 0 ? 0.0 : a / static_cast<double>(b); }

}  // namespace

void count::access(const Executor& x, const race::Access& access, const void* instruction) {
  note(x, access, instruction, -1);
}
void count::access(const Executor& x, const race::Access& access, Site site) {
  note(x, access, site.file, site.line);
}

void count::end_block(const Executor& x) {
  Counter& counter = host::counter();
  LaunchRow& launch = counter.launches[x.grid.kernel];
  launch.kernel = x.grid.kernel;
  launch.threads = std::max(launch.threads, x.grid.block.x * x.grid.block.y * x.grid.block.z);
  launch.shared_bytes = std::max(launch.shared_bytes, x.grid.shared_bytes);
  for (const auto& [key, executions] : counter.block) {
    Totals& totals = counter.totals[{x.grid.kernel, key}];
    for (const auto& requests : executions.requests) {
      for (const Request& request : requests) {
        totals.add(is_shared(key.kind) ? count_shared(request) : count_global(request));
      }
    }
  }
  counter.block.clear();
  std::fill(counter.last.begin(), counter.last.end(), Last{});
}

double AccessRow::sectors_per_request() const {
  return ratio(static_cast<double>(sectors), requests);
}
double AccessRow::used_share() const {
  return ratio(static_cast<double>(bytes_used), sectors * kSector);
}
double AccessRow::wavefronts_per_request() const {
  return ratio(static_cast<double>(wavefronts), requests);
}

std::vector<AccessRow> access_report() {
  std::map<std::tuple<std::string, std::string, int, AccessKind>, Totals> rows;
  for (const auto& [kernel_and_key, totals] : counter().totals) {
    const auto& [kernel, key] = kernel_and_key;
    const auto [file, line] = line_of(key);
    rows[{kernel, file, line, key.kind}].add(totals);
  }
  std::vector<AccessRow> report;
  for (const auto& [place, totals] : rows) {
    const auto& [kernel, file, line, kind] = place;
    report.push_back({kernel, file, line, kind, totals.requests, totals.sectors, totals.bytes_used,
                      totals.wavefronts});
  }
  return report;
}
std::vector<LaunchRow> launch_report() {
  std::vector<LaunchRow> report;
  for (const auto& [kernel, launch] : counter().launches) {
    report.push_back(launch);
  }
  return report;
}
void reset_access_report() {
  counter().totals.clear();
  counter().launches.clear();
}

}  // namespace binade::kernels::host
