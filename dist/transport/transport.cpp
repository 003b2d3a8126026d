#include <binade/dist/transport/transport.h>

#include <chrono>

namespace binade::dist {
namespace {

constexpr size_t kWorkspaceAlignment = 64;

}  // namespace

void Transport::add(bool is_send, int peer, std::byte* data, size_t bytes) {
  check(in_group_, "transport: got a message outside of a group; call group_start() first");
  check(peer >= 0 && peer < size_ && peer != rank_, "transport: rank ", rank_, " got peer ", peer,
        ", expected another rank of 0 .. ", size_ - 1);
  if (bytes > 0) {
    group_.push_back({is_send, peer, data, bytes});
    (is_send ? bytes_sent_ : bytes_received_) += bytes;
  }
}

void Transport::send(int peer, const void* data, size_t bytes) {
  add(true, peer, static_cast<std::byte*>(const_cast<void*>(data)), bytes);
}

void Transport::receive(int peer, void* data, size_t bytes) {
  add(false, peer, static_cast<std::byte*>(data), bytes);
}

void Transport::group_start() {
  check(!in_group_, "transport: group_start() within a group");
  in_group_ = true;
}

uint64_t Transport::group_end() {
  check(in_group_, "transport: group_end() without group_start()");
  in_group_ = false;
  if (is_interrupted()) {
    group_.clear();
    throw TransportError("the transport was interrupted");
  }
  ++posted_;
  post(group_);
  group_.clear();
  return posted_;
}

void Transport::wait(uint64_t ticket) {
  try {
    wait_until(ticket);
  } catch (...) {
    interrupt();
    abandon();
    throw;
  }
}

void Transport::wait_until(uint64_t ticket) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  while (done_ < ticket) {
    if (is_interrupted()) {
      throw TransportError("the transport was interrupted");
    }
    done_ = progress();
    if (done_ < ticket && std::chrono::duration<double>(Clock::now() - start).count() > timeout_) {
      const std::string why = missing();
      throw TransportError(text("no answer in ", timeout_, " s", why.empty() ? "" : "; ", why));
    }
  }
}

void Transport::library_all_reduce(const View&, ReduceOp) {
  fail("all_reduce: the transport ", name(), " has no all-reduce of a library; use the ring");
}

std::byte* Transport::workspace(size_t bytes) {
  if (workspace_.size() < bytes + kWorkspaceAlignment) {
    workspace_ = std::vector<std::byte>(bytes + kWorkspaceAlignment);
  }
  void* begin = workspace_.data();
  size_t space = workspace_.size();
  return static_cast<std::byte*>(std::align(kWorkspaceAlignment, bytes, begin, space));
}

void Transport::interrupt() noexcept {
  interrupted_.store(true, std::memory_order_release);
  wake();
}

}  // namespace binade::dist
