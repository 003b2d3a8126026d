// Findings of a child process in types without the executor: the lab library does not contain it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace binade::lab {

class WireWriter;
class WireReader;

enum class Gravity : uint8_t { unsafe, wrong, warning, performance };
const char* name_of(Gravity gravity);

// One of the two threads of a finding.
struct FoundSide {
  std::string act = {};   // "reads", "writes", ...; empty: this side is not set
  std::string past = {};  // "read", "wrote", ...
  std::string file = {};
  int32_t line = 0;             // 0: unknown
  int32_t column = 0;           // in bytes from 1; 0: unknown
  std::string inner_file = {};  // the place inside a helper that the line calls
  int32_t inner_line = 0;
  std::string block = {}, thread = {};  // "(1,0,0)"
  int32_t warp = 0, lane = 0;
};

struct Found {
  std::string kind = {};  // "race", "out of bounds", ...
  Gravity gravity = Gravity::unsafe;
  std::string kernel = {};
  FoundSide first = {}, second = {};
  std::string element = {};  // "tile[33]"
  std::string array = {};
  int64_t index = 0, length = 0;  // position in the array and its length, in elements
  std::string remedy = {};        // "__syncthreads()"
  std::string order = {};         // for races: "write after read"
  std::string message = {};
  bool ended = false;  // the finding ended the launch
  uint64_t count = 0, elements = 0;
};

void write(WireWriter& out, const Found& found);
Found read_found(WireReader& in);

// A row of the access report: the memory requests of a kernel's warps at one line.
struct FoundAccess {
  std::string kernel = {}, file = {};
  int32_t line = 0;
  bool shared = false, atomic = false, write = false;
  uint64_t requests = 0;
  uint64_t lanes = 0, possible_lanes = 0;   // if fewer than possible, a warp had diverged
  uint64_t sectors = 0, ideal_sectors = 0;  // for global memory
  uint64_t passes = 0, ideal_passes = 0;    // for shared memory
  uint64_t bytes = 0;                       // requested bytes; each byte of a request counts once
  uint64_t conflicts = 0;  // atomics: most lanes on one address, summed over requests
};
void write(WireWriter& out, const FoundAccess& row);
FoundAccess read_access(WireReader& in);

// Operations that a warp does together at one line: barriers, shuffles, matrix products.
struct FoundTogether {
  std::string kernel = {}, file = {};
  int32_t line = 0;
  std::string what = {};          // "__syncthreads", "__shfl_down_sync", "mma_sync"
  uint64_t warps = 0, lanes = 0;  // executions by warps, and lanes that took part
};
void write(WireWriter& out, const FoundTogether& row);
FoundTogether read_together(WireReader& in);

struct FoundLaunch {
  std::string kernel = {};
  int32_t line = 0;
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  uint64_t shared_bytes = 0;  // dynamic shared memory
};
void write(WireWriter& out, const FoundLaunch& launch);
FoundLaunch read_launch(WireReader& in);

// The threads that wrote the elements of an output last.
struct FoundWriters {
  struct Line {
    std::string file = {};
    int32_t line = 0;
  };
  struct Writer {
    uint32_t line = 0;  // index in `lines` plus 1; 0: not written
    uint32_t block[3] = {0, 0, 0}, thread[3] = {0, 0, 0};
  };
  std::string array = {};
  std::vector<Line> lines = {};
  std::vector<Writer> elements = {};
};
void write(WireWriter& out, const FoundWriters& writers);
FoundWriters read_writers(WireReader& in);

// A finite number that became infinite.
struct FoundNumber {
  std::string event = {};  // "exp", "__half"
  float value = 0;         // the first one
  std::string file = {};
  int32_t line = 0;
  std::string block = {}, thread = {};
  uint64_t count = 0;
};
void write(WireWriter& out, const FoundNumber& number);
FoundNumber read_number(WireReader& in);

}  // namespace binade::lab
