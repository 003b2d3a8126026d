// Health: the state of the ranks of a job, as they know it of each other. If one rank cannot go on,
// all end with the same error, which shows where each rank was.
#pragma once
#include <binade/dist/job/progress.h>
#include <binade/dist/transport/transport.h>

namespace binade::dist {

// Thrown by collectives on every rank: the cause, and a table of where each rank is.
class CollectiveError : public Error {
 public:
  using Error::Error;
};

class Health {
 public:
  virtual ~Health() = default;
  // Called by a rank that cannot go on: ends the job and returns the error of all ranks within a
  // second or two.
  virtual std::string report(const std::string& cause) = 0;
  // The error that ended the job; empty while there is none.
  virtual std::string verdict() const = 0;

  Progress& progress() { return progress_; }
  // The transport will be interrupted when the job ends.
  void watch(const std::shared_ptr<Transport>& transport);

 protected:
  void interrupt_transports() noexcept;

 private:
  Progress progress_;
  struct Watched;
  std::shared_ptr<Watched> watched_ = make_watched();
  static std::shared_ptr<Watched> make_watched();
};

}  // namespace binade::dist
