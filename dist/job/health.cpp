#include <binade/dist/job/health.h>

#include <algorithm>
#include <mutex>

namespace binade::dist {

struct Health::Watched {
  std::mutex mutex;
  std::vector<std::weak_ptr<Transport>> transports;
};

std::shared_ptr<Health::Watched> Health::make_watched() { return std::make_shared<Watched>(); }

void Health::watch(const std::shared_ptr<Transport>& transport) {
  const std::lock_guard lock(watched_->mutex);
  std::erase_if(watched_->transports, [](const auto& known) { return known.expired(); });
  watched_->transports.push_back(transport);
}

void Health::interrupt_transports() noexcept {
  const std::lock_guard lock(watched_->mutex);
  for (const auto& known : watched_->transports) {
    if (const auto transport = known.lock()) {
      transport->interrupt();
    }
  }
}

}  // namespace binade::dist
