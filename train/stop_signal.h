// StopSignal: lets a run end cleanly. While one exists, SIGINT and SIGTERM are recorded and do not
// end the process; another one more than a second later ends it as usual. (An earlier one may be
// the same signal again: a terminal signals every process of a job, and the launcher forwards its
// own.)
#pragma once

namespace binade::train {

class StopSignal {
 public:
  // If `on` is false, it does nothing.
  explicit StopSignal(bool on);
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // The signal received since the oldest existing StopSignal was made, else 0.
  int noted() const;

 private:
  bool on_;
};

}  // namespace binade::train
