// What a child process found, without the executor's types: the lab itself has no executor in it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace binade::lab {

class WireWriter;
class WireReader;

enum class Gravity : uint8_t { unsafe, wrong, warning, performance };
const char* name_of(Gravity gravity);

// One of the two threads.
struct FoundSide {
  std::string act = {};   // "reads", "writes", ...; empty: there is no such side
  std::string past = {};  // "read", "wrote", ...
  std::string file = {};
  int32_t line = 0;             // 0: not known
  int32_t column = 0;           // in bytes from 1; 0: not known
  std::string inner_file = {};  // the place in a helper that the line calls
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
  int64_t index = 0, length = 0;  // of the array, in elements
  std::string remedy = {};        // "__syncthreads()"
  std::string order = {};         // of races: "write after read"
  std::string message = {};
  bool ended = false;  // the launch ended with it
  uint64_t count = 0, elements = 0;
};

void write(WireWriter& out, const Found& found);
Found read_found(WireReader& in);

// A row of the access report: what the warps of a kernel asked for at one line.
struct FoundAccess {
  std::string kernel = {}, file = {};
  int32_t line = 0;
  bool shared = false, atomic = false, write = false;
  uint64_t requests = 0;
  uint64_t lanes = 0, possible_lanes = 0;   // fewer lanes than possible: a warp that diverged
  uint64_t sectors = 0, ideal_sectors = 0;  // of global memory
  uint64_t passes = 0, ideal_passes = 0;    // of shared memory
  uint64_t bytes = 0;                       // that lanes asked for, each byte of a request once
  uint64_t conflicts = 0;  // of atomics: lanes on one address; `requests` without contention
};
void write(WireWriter& out, const FoundAccess& row);
FoundAccess read_access(WireReader& in);

// What warps do together at one line: barriers, shuffles, products of matrices.
struct FoundTogether {
  std::string kernel = {}, file = {};
  int32_t line = 0;
  std::string what = {};          // "__syncthreads", "__shfl_down_sync", "mma_sync"
  uint64_t warps = 0, lanes = 0;  // times, one a warp, and the lanes that took part
};
void write(WireWriter& out, const FoundTogether& row);
FoundTogether read_together(WireReader& in);

struct FoundLaunch {
  std::string kernel = {};
  int32_t line = 0;
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  uint64_t shared_bytes = 0;  // dynamic
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
    uint32_t line = 0;  // 1 + an index of `lines`; 0: nobody wrote it
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
