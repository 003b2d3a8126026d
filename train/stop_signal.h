// StopSignal: lets a run end in good order. While one exists, SIGINT and SIGTERM are noted instead
// of ending the process; a further one a second later ends it as usual. (Sooner it may be the same
// one again: a terminal tells every process of a job, and the launcher passes on what it gets.)
#pragma once

namespace binade::train {

class StopSignal {
 public:
  // With `on` false nothing happens.
  explicit StopSignal(bool on);
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // The signal that came since the first of those that exist was made, else 0.
  int noted() const;

 private:
  bool on_;
};

}  // namespace binade::train
