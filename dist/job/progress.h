// Progress: the collective in which a rank is. Communicators write it; error messages read it.
#pragma once
#include <binade/core/owned.h>
#include <binade/dist/collective/signature.h>

#include <string>
#include <vector>

namespace binade::dist {

// The state of one rank at a moment; sent between processes as raw bytes.
struct RankProgress {
  uint64_t sequence = 0;  // of the last collective started: 1, 2, ...; 0: none yet
  Signature signature{};
  int64_t step = -1;   // training step, if the program sets it
  double seconds = 0;  // since it entered, or left, the collective
  int32_t inside = 0;  // 1 while it is inside a collective
  char group[20] = "";
};

// Thread-safe.
class Progress {
 public:
  Progress();
  ~Progress();
  void enter(const std::string& group, uint64_t sequence, const Signature& signature);
  void leave();
  void set_step(int64_t step);
  RankProgress now() const;

 private:
  struct State;
  Owned<State> state_;
};

struct RankReport {
  int rank;
  RankProgress where;
  std::string state;    // "dead", "left", "no answer"; empty: alive
  std::string process;  // "pid 17 on host"; may be empty
};

// The cause and a table with one line per rank; ranks that others wait for are marked.
std::string rank_table(const std::string& cause, const std::vector<RankReport>& ranks);

}  // namespace binade::dist
