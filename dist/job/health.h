// Health: what the ranks of a job know of each other beside their data. When one cannot go on, all
// end with one error that tells where each was.
#pragma once
#include <binade/dist/job/progress.h>
#include <binade/dist/transport/transport.h>

namespace binade::dist {

// Collectives end with this on every rank: the cause, and a table of who is where.
class CollectiveError : public Error {
 public:
  using Error::Error;
};

class Health {
 public:
  virtual ~Health() = default;
  // Called by a rank that cannot go on: ends the job and returns the error of all ranks, in a
  // second or two.
  virtual std::string report(const std::string& cause) = 0;
  // The error that ended the job; empty while all is well.
  virtual std::string verdict() const = 0;

  Progress& progress() { return progress_; }
  // The transport is interrupted when the job ends.
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
