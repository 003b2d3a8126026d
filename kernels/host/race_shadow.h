// Shadow memory of the race detector: the last write and two reads of each granule of memory.
#pragma once
#include <binade/kernels/host/place.h>
#include <binade/kernels/host/race.h>

#include <memory>
#include <unordered_map>
#include <vector>

namespace binade::kernels::host::race {

struct Record {
  uint32_t epoch = 0;
  uint32_t block = 0;
  Place place;
  uint16_t thread = 0;
  Kind kind = Kind::read;
  bool used = false;
};

struct Cell {
  uint32_t generation = 0;  // of the grid, or of the block for shared memory; other values: empty
  uint32_t write_generation = 0;  // of the last write, which stays when the cell is empty
  Record write, reads[2];
  Place updated;  // where the thread of `write` had read the old value; unknown if it had not
};

// The cells of some memory: one per 1 << `shift` bytes; 4 bytes until a smaller access comes.
struct Page {
  static constexpr size_t kBytes = 1024;
  unsigned shift = 2;
  std::unique_ptr<Cell[]> cells = std::make_unique<Cell[]>(kBytes >> 2);

  void refine(unsigned smaller) {
    auto finer = std::make_unique<Cell[]>(kBytes >> smaller);
    for (size_t i = 0; i < kBytes >> smaller; ++i) {
      finer[i] = cells[i >> (shift - smaller)];
    }
    cells.swap(finer);
    shift = smaller;
  }
};

class Shadow {
 public:
  Page& page(uintptr_t number) {
    auto& slot = recent_[number % kRecent];
    if (slot.page == nullptr || slot.number != number) {
      auto& page = pages_[number];
      if (page == nullptr) {
        page = std::make_unique<Page>();
      }
      slot = {number, page.get()};
    }
    return *slot.page;
  }
  // The cell of an address; null if no kernel touched its page.
  const Cell* find(const void* address) const {
    const auto at = reinterpret_cast<uintptr_t>(address);
    const auto found = pages_.find(at / Page::kBytes);
    return found == pages_.end() ? nullptr
                                 : &found->second->cells[at % Page::kBytes >> found->second->shift];
  }

 private:
  static constexpr size_t kRecent = 1024;
  struct Recent {
    uintptr_t number = 0;
    Page* page = nullptr;
  };
  std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages_;
  std::vector<Recent> recent_ = std::vector<Recent>(kRecent);
};

// Two accesses without an order, of which one writes.
struct Conflict {
  Record now, before;
  const char* order;      // "read after write"
  const char* address;    // of the granule
  size_t granule, bytes;  // of the granule, and of the access
  bool shared;
  bool updates;   // both read the old value at the same place: x[i] += ...
  bool unfenced;  // a read of what another block published, without a fence of its own
};
// The element of a __device__ variable, in elements of these bytes; without a name if none is
// known.
FoundElement static_element(const void* address, size_t element_bytes);
// Makes the conflict a finding: ends the launch, or returns if it goes on.
void report(Executor& x, const Conflict& conflict);
// Stores that race are told apart from stores of the same value after they have happened.
inline bool has_unsettled_stores = false;
void settle_stores(Executor& x);
void report_uninitialised(Executor& x, const Record& now, const char* address, size_t bytes);
void report_misaligned(Executor& x, const void* address, size_t alignment, Place place);

// Compares an access with the named ranges and with the bounds of shared memory.
enum class Checked : uint8_t {
  right,
  wrong,    // a finding after which nothing else is to be said about it
  no_race,  // a read of an input that no kernel has written: nothing can race with it
};
Checked check_memory(Executor& x, const Access& access, Place place);
// An access of host code, at an instruction: a finding if it is to memory of the device.
void access_by_host(const Access& access, const void* instruction);

}  // namespace binade::kernels::host::race
