#include <binade/dist/job/threads.h>
#include <binade/dist/transport/thread_transport.h>

#include <exception>
#include <mutex>
#include <thread>

namespace binade::dist {
namespace {

class ThreadHealth;

// State that the ranks share.
struct ThreadJob {
  std::mutex mutex;
  std::string verdict;
  std::vector<std::shared_ptr<ThreadHealth>> ranks;
};

class ThreadHealth final : public Health {
 public:
  explicit ThreadHealth(ThreadJob& job) : job_(job) {}

  std::string report(const std::string& cause) override;
  std::string verdict() const override {
    const std::lock_guard lock(job_.mutex);
    return job_.verdict;
  }

  std::string state;  // guarded by the job's mutex

 private:
  ThreadJob& job_;
};

std::string ThreadHealth::report(const std::string& cause) {
  const std::lock_guard lock(job_.mutex);
  if (job_.verdict.empty()) {
    std::vector<RankReport> reports;
    for (size_t rank = 0; rank < job_.ranks.size(); ++rank) {
      ThreadHealth& health = *job_.ranks[rank];
      reports.push_back({static_cast<int>(rank), health.progress().now(), health.state, ""});
    }
    job_.verdict = rank_table(cause, reports);
    for (const auto& health : job_.ranks) {
      health->interrupt_transports();
    }
  }
  return job_.verdict;
}

}  // namespace

void run_threads(int size, const std::function<void(Communicator&)>& body,
                 const CommunicatorOptions& options) {
  const auto hub = make_thread_hub(size);
  ThreadJob job;
  for (int rank = 0; rank < size; ++rank) {
    job.ranks.push_back(std::make_shared<ThreadHealth>(job));
  }
  std::exception_ptr own, collective;  // the first of each kind
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto& health = job.ranks[static_cast<size_t>(rank)];
      const auto state = [&](const char* now) {
        const std::lock_guard lock(job.mutex);
        health->state = now;
      };
      // Destroyed last, after the state is set: once the transport is gone, other ranks notice it
      // at once.
      const std::shared_ptr<Transport> transport =
          with_delay(make_thread_transport(hub, rank), options.link);
      try {
        Communicator communicator(transport, health, options);
        body(communicator);
        state("returned");
      } catch (const CollectiveError&) {
        const std::lock_guard lock(job.mutex);
        collective = collective ? collective : std::current_exception();
      } catch (...) {
        state("threw");
        const std::lock_guard lock(job.mutex);
        own = own ? own : std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  if (own || collective) {
    std::rethrow_exception(own ? own : collective);
  }
}

}  // namespace binade::dist
