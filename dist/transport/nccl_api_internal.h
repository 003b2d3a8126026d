// The part of NCCL that Binade calls, as a table of functions found at run time: a build needs no
// header of NCCL, and programs run without NCCL installed. Layouts and numbers are those of NCCL
// 2.17 and later, whose ABI is stable (nccl.h: ncclConfig_v21700, ncclResult_t, ncclDataType_t,
// ncclRedOp_t).
#pragma once
#include <climits>
#include <cstddef>
#include <string>

namespace binade::dist::nccl {

enum Result : int { kSuccess = 0, kInProgress = 7 };
enum DataType : int {
  kUint8 = 1,
  kInt32 = 2,
  kInt64 = 4,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9
};
enum RedOp : int { kSum = 0, kMax = 2, kMin = 3, kAvg = 4 };

struct UniqueId {
  char bytes[128];
};

// Calls return at once and continue in the background (blocking = 0).
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef, version = 21700;
  int blocking = 0, cga_cluster_size = INT_MIN, min_ctas = INT_MIN, max_ctas = INT_MIN;
  const char* net_name = nullptr;
};
static_assert(sizeof(Config) == 40);

using Comm = void*;
using Stream = void*;  // cudaStream_t

struct Api {
  Result (*GetVersion)(int* version);
  Result (*GetUniqueId)(UniqueId* id);
  Result (*CommInitRankConfig)(Comm* comm, int ranks, UniqueId id, int rank, Config* config);
  Result (*CommFinalize)(Comm comm);
  Result (*CommDestroy)(Comm comm);
  Result (*CommAbort)(Comm comm);
  Result (*CommGetAsyncError)(Comm comm, Result* error);
  const char* (*GetErrorString)(Result result);
  const char* (*GetLastError)(Comm comm);
  Result (*GroupStart)();
  Result (*GroupEnd)();
  Result (*Send)(const void* data, size_t count, DataType type, int peer, Comm comm, Stream stream);
  Result (*Recv)(void* data, size_t count, DataType type, int peer, Comm comm, Stream stream);
  Result (*AllReduce)(const void* from, void* to, size_t count, DataType type, RedOp op, Comm comm,
                      Stream stream);
};

// Loaded by the first call (kernels/base/vendor_library.h says from where). Throws Error with the
// reason if that fails.
const Api& api();
// The reason; empty if NCCL is available.
std::string missing();
std::string path();  // of the loaded file; empty if there is none

}  // namespace binade::dist::nccl
