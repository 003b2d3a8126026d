#include <binade/dist/transport/delayed_transport.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>

namespace binade::dist {
namespace {

using Clock = std::chrono::steady_clock;

Clock::duration seconds(double value) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(value));
}

// A rank's outgoing link, shared by its transport and the transports split from it.
class Link {
 public:
  explicit Link(const LinkDelay& delay) : delay_(delay) {}

  struct Times {
    Clock::time_point leaves, arrives;
  };
  Times send(size_t bytes) {
    const std::lock_guard lock(mutex_);
    free_ = std::max(free_, Clock::now());
    if (delay_.bytes_per_second > 0) {
      free_ += seconds(static_cast<double>(bytes) / delay_.bytes_per_second);
    }
    return {free_, free_ + seconds(delay_.latency)};
  }

 private:
  const LinkDelay delay_;
  std::mutex mutex_;
  Clock::time_point free_;
};

class DelayedTransport final : public Transport {
 public:
  DelayedTransport(std::shared_ptr<Transport> inner, std::shared_ptr<Link> link)
      : Transport(inner->rank(), inner->size()), link_(std::move(link)), inner_(std::move(inner)) {}

  // `inner` may live longer, and must then not access the memory of messages in flight.
  ~DelayedTransport() override {
    if (!groups_.empty()) {
      abandon();
    }
  }

  const char* name() const override { return inner_->name(); }

  std::unique_ptr<Transport> split(const std::vector<int>& members) override {
    return std::make_unique<DelayedTransport>(inner_->split(members), link_);
  }

 protected:
  void post(const std::vector<Message>& group) override {
    Group& posted = groups_.emplace_back();
    posted.messages.resize(group.size());  // this memory does not move
    inner_->group_start();
    for (size_t i = 0; i < group.size(); ++i) {
      const Message& message = group[i];
      Stamp& stamp = posted.messages[i];
      if (message.is_send) {
        const Link::Times times = link_->send(message.bytes);
        posted.due = std::max(posted.due, times.leaves);
        stamp.arrives = times.arrives.time_since_epoch().count();
        inner_->send(message.peer, &stamp.arrives, sizeof stamp.arrives);
        inner_->send(message.peer, message.data, message.bytes);
      } else {
        stamp.is_received = true;
        inner_->receive(message.peer, &stamp.arrives, sizeof stamp.arrives);
        inner_->receive(message.peer, message.data, message.bytes);
      }
    }
    posted.ticket = inner_->group_end();
  }

  uint64_t progress() override {
    if (groups_.empty()) {
      return finished_;
    }
    Group& front = groups_.front();
    inner_->set_timeout(timeout());
    inner_->wait(front.ticket);
    for (const Stamp& stamp : front.messages) {
      if (stamp.is_received) {
        front.due = std::max(front.due, Clock::time_point(Clock::duration(stamp.arrives)));
      }
    }
    std::unique_lock lock(mutex_);
    if (!changed_.wait_until(lock, front.due, [&] { return is_interrupted(); })) {
      groups_.pop_front();
      ++finished_;
    }
    return finished_;
  }

  void wake() noexcept override {
    inner_->interrupt();
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }

  void abandon() noexcept override {
    inner_->interrupt();
    try {
      if (!groups_.empty()) {
        inner_->wait(groups_.back().ticket);
      }
    } catch (const std::exception&) {  // it no longer uses the memory
    }
    groups_.clear();
  }

 private:
  struct Stamp {
    Clock::rep arrives = 0;
    bool is_received = false;
  };
  struct Group {
    uint64_t ticket = 0;
    Clock::time_point due;  // when all it sends has left and all it receives has arrived
    std::vector<Stamp> messages;
  };

  std::shared_ptr<Link> link_;
  std::deque<Group> groups_;  // not done yet; they outlive messages in flight
  std::shared_ptr<Transport> inner_;
  uint64_t finished_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace

LinkDelay parse_link_delay(const std::string& text) {
  LinkDelay link;
  const char* at = text.c_str();
  const auto number = [&](double unit) {
    char* end = nullptr;
    const double value = std::strtod(at, &end);
    check(end != at && value >= 0 && value < 1e12, "link delay: got '", text,
          "', expected milliseconds, or milliseconds and MB/s: 0.5,100");
    at = end;
    return value * unit;
  };
  if (text.empty()) {
    return link;
  }
  link.latency = number(1e-3);
  if (*at == ',') {
    ++at;
    link.bytes_per_second = number(1e6);
  }
  check(*at == 0, "link delay: got '", text,
        "', expected milliseconds, or milliseconds and MB/s: 0.5,100");
  return link;
}

std::shared_ptr<Transport> with_delay(std::shared_ptr<Transport> inner, const LinkDelay& link) {
  if (link.none()) {
    return inner;
  }
  check(inner->device().is_cpu(), "link delay: got a transport of ", inner->device(),
        ", expected one that carries memory of the CPU");
  return std::make_shared<DelayedTransport>(std::move(inner), std::make_shared<Link>(link));
}

}  // namespace binade::dist
