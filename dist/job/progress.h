// Where a rank is: kept by its communicators, read by whoever has to explain a failure.
#pragma once
#include <binade/dist/collective/signature.h>

#include <memory>
#include <string>
#include <vector>

namespace binade::dist {

// A moment of one rank; travels between processes as it is.
struct Whereabouts {
  uint64_t sequence = 0;  // of the last collective begun, 1, 2, ...; 0: none yet
  Signature signature{};
  int64_t step = -1;   // of training, where the program says it
  double seconds = 0;  // since the collective was entered, or left
  int32_t inside = 0;  // whether the rank is in it
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
  Whereabouts now() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct RankReport {
  int rank;
  Whereabouts where;
  std::string state;    // "dead", "left", "no answer"; empty: alive
  std::string process;  // "pid 17 on host"; may be empty
};

// "cause" and a table, one line per rank, those that the others wait for marked.
std::string who_is_where(const std::string& cause, const std::vector<RankReport>& ranks);

}  // namespace binade::dist
