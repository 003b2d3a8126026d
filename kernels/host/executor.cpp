// Grids: options, checks of a launch, and the OS threads that run its blocks.
#include <binade/kernels/host/executor_internal.h>
#include <binade/kernels/host/race.h>
#include <binade/kernels/host/sanitizer.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

namespace binade::kernels::host {
namespace {

uint64_t parse_number(const char* name, const char* value) {
  char* end = nullptr;
  const uint64_t number = std::strtoull(value, &end, 10);
  check(end != value && *end == '\0' && *value != '-', name, ": got \"", value,
        "\", expected a number");
  return number;
}

// Executors not in use by an OS thread: creating one costs more than running a small grid.
class ExecutorPool {
 public:
  std::unique_ptr<Executor> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      return std::make_unique<Executor>();
    }
    auto executor = std::move(free_.back());
    free_.pop_back();
    return executor;
  }
  void put(std::unique_ptr<Executor> executor) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(executor));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Executor>> free_;
};
ExecutorPool& executor_pool() {
  static auto& pool = *new ExecutorPool;  // never destroyed: kernels may run while a program ends
  return pool;
}

// State that the OS threads of one launch share.
struct Launch {
  Grid grid{};
  Body body = nullptr;
  void* context = nullptr;
  size_t context_bytes = 0;
  uint64_t number = 0;
  Options options;
  CheckOptions checks;
  uint64_t blocks = 0;  // of the grid
  uint64_t turns = 0;   // blocks that run
  std::atomic<uint64_t> next{0};
  std::atomic<bool> failed{false};
  std::string error;
};

void prepare(Executor& x, const Launch& launch) {
  x.options = launch.options;
  x.checks = launch.checks;
  x.grid = launch.grid;
  x.body = launch.body;
  x.context = launch.context;
  x.context_bytes = launch.context_bytes;
  x.launch = launch.number;
  x.random = launch.options.seed * 0x9e3779b97f4a7c15u + 0x1234567u;
  x.failed = false;
#if BINADE_HOST_ASAN
  static thread_local const Fiber os_thread = fiber_of_os_thread();
  x.main = os_thread;
#endif
  unpoison(x.shared, x.grid.shared_bytes);
  poison(x.shared + x.grid.shared_bytes, kSharedArena - x.grid.shared_bytes);
  forget_shared_arrays(x);
  const dim3 block = x.grid.block;
  x.thread_count = static_cast<int>(block.x * block.y * block.z);
  x.warp_count = (x.thread_count + 31) / 32;
  if (x.threads.size() < static_cast<size_t>(x.thread_count)) {
    x.threads.resize(static_cast<size_t>(x.thread_count));
  }
  for (unsigned i = 0; i < static_cast<unsigned>(x.thread_count); ++i) {
    x.threads[i].index = {i % block.x, i / block.x % block.y, i / block.x / block.y};
  }
  gridDim = x.grid.grid;
  blockDim = block;
  race::begin_grid(x);
}

// The block that runs in this turn.
uint64_t block_of_turn(const Launch& launch, uint64_t turn) {
  const uint64_t turns = launch.turns;
  if (launch.options.schedule == Schedule::reverse) {
    turn = turns - 1 - turn;
  } else if (launch.options.schedule == Schedule::forward && launch.checks.interleaved) {
    turn = turn % 2 * ((turns + 1) / 2) + turn / 2;
  }
  // Sampled blocks lie evenly between the first and the last.
  return turns == launch.blocks
             ? turn
             : static_cast<uint64_t>(static_cast<unsigned __int128>(turn) * (launch.blocks - 1) /
                                     std::max<uint64_t>(turns - 1, 1));
}

void run_blocks(Launch& launch) {
  auto own = executor_pool().take();
  Executor& x = *own;
  prepare(x, launch);
  current_executor = &x;
  while (!launch.failed) {
    const uint64_t turn = launch.next++;
    if (turn >= launch.turns) {
      break;
    }
    const uint64_t block = block_of_turn(launch, turn);
    run_block(x, block, block_index(x, block));
    if (x.failed && !launch.failed.exchange(true)) {
      launch.error = x.error;
    }
  }
  current_executor = nullptr;
  race::end_grid(x);
  unpoison(x.shared, kSharedArena);
  executor_pool().put(std::move(own));
}

// The limits of compute capability 7.5 and later; for shared memory those of sm_90.
void check_launch(const Grid& grid) {
  const auto refuse = [&](const auto&... why) {
    throw KernelError(text("kernel ", grid.kernel, ": ", why...));
  };
  if (inside_kernel()) {
    refuse("launched by a kernel; only host code may launch");
  }
  const auto dims = [](dim3 d) { return text("(", d.x, ", ", d.y, ", ", d.z, ")"); };
  const dim3 g = grid.grid, b = grid.block;
  const uint64_t threads = static_cast<uint64_t>(b.x) * b.y * b.z;
  if (threads == 0 || b.x > kMaxThreads || b.y > kMaxThreads || b.z > 64 || threads > kMaxThreads) {
    refuse("block ", dims(b), "; a block has 1 to 1024 threads, at most 64 along z");
  }
  if (g.x == 0 || g.y == 0 || g.z == 0 || g.x > 0x7fffffffu || g.y > 65535 || g.z > 65535) {
    refuse("grid ", dims(g), "; a grid has 1 to 2147483647 x 65535 x 65535 blocks");
  }
  if (grid.shared_bytes > kMaxShared) {
    refuse(grid.shared_bytes, " bytes of shared memory; a block has at most ", kMaxShared);
  }
}

}  // namespace

Executor::Executor() : fibers(kMaxThreads, run_threads) {
  shared = static_cast<char*>(std::aligned_alloc(1024, kSharedArena));
  check(shared != nullptr, "host execution: no memory for shared memory");
}
Executor::~Executor() { std::free(shared); }

Options options_from_environment() {
  Options options;
  if (const char* value = std::getenv("BINADE_HOST_SCHEDULE")) {
    const std::string_view name = value;
    check(name == "forward" || name == "reverse" || name == "random",
          "BINADE_HOST_SCHEDULE: got \"", name, "\", expected forward, reverse or random");
    options.schedule = name == "forward"   ? Schedule::forward
                       : name == "reverse" ? Schedule::reverse
                                           : Schedule::random;
  }
  if (const char* value = std::getenv("BINADE_HOST_SEED")) {
    options.seed = parse_number("BINADE_HOST_SEED", value);
  }
  if (const char* value = std::getenv("BINADE_HOST_THREADS")) {
    const uint64_t threads = parse_number("BINADE_HOST_THREADS", value);
    check(threads >= 1 && threads <= 256, "BINADE_HOST_THREADS: got ", threads,
          ", expected 1 to 256");
    options.os_threads = static_cast<int>(threads);
  }
  if (const char* value = std::getenv("BINADE_HOST_ASYNC")) {
    const std::string_view name = value;
    check(name == "late" || name == "early", "BINADE_HOST_ASYNC: got \"", name,
          "\", expected late or early");
    options.late_async = name == "late";
  }
  return options;
}
CheckOptions& check_options() {
  static CheckOptions options;
  return options;
}
Options& options() {
  static Options options = options_from_environment();
  return options;
}

static void run_blocks_of(const Grid& grid, Body body, void* context, size_t context_bytes) {
  static std::atomic<uint64_t> launches{0};
  check_launch(grid);
  const race::GridLock one_at_a_time;
  Launch launch;
  launch.grid = grid;
  launch.body = body;
  launch.context = context;
  launch.context_bytes = context_bytes;
  launch.number = ++launches;
  launch.options = options();
  launch.checks = check_options();
  launch.blocks = static_cast<uint64_t>(grid.grid.x) * grid.grid.y * grid.grid.z;
  launch.turns = launch.blocks;
  if (launch.checks.sampled_blocks > 0) {
    launch.turns = std::min(launch.turns, launch.checks.sampled_blocks);
  }
  const auto wanted = static_cast<uint64_t>(has_race_detector() ? 1 : launch.options.os_threads);
  std::vector<std::thread> others;
  for (uint64_t i = 1; i < std::min(wanted, launch.turns); ++i) {
    others.emplace_back([&] { run_blocks(launch); });
  }
  run_blocks(launch);
  for (auto& other : others) {
    other.join();
  }
  if (launch.failed) {
    throw KernelError(launch.error);
  }
}

void run_grid(const Grid& grid, Body body, void* context) { run_blocks_of(grid, body, context, 0); }
void KernelThread::run(const Grid& grid) const { run_blocks_of(grid, body_, closure_, bytes_); }

bool has_race_detector() {
#if BINADE_HOST_RACE
  return true;
#else
  return false;
#endif
}
bool has_address_sanitizer() {
#if BINADE_HOST_ASAN
  return true;
#else
  return false;
#endif
}

}  // namespace binade::kernels::host
