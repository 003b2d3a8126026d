#include <arpa/inet.h>
#include <binade/dist/transport/socket_internal.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace binade::dist {
namespace {

bool would_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

// True if the file became ready; poll takes milliseconds.
bool wait_for(int file, short events, double seconds) {
  pollfd one{file, events, 0};
  const int ready = ::poll(&one, 1, static_cast<int>(std::clamp(seconds, 0.0, 1e6) * 1000));
  return ready > 0;
}

void prepare(int file) {
  ::fcntl(file, F_SETFL, ::fcntl(file, F_GETFL) | O_NONBLOCK);
  const int on = 1;
  ::setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// Moves a socket off the number of a closed standard stream: output would go to the socket.
Socket above_standard_streams(int file) {
  Socket socket(file);
  if (file >= 0 && file <= STDERR_FILENO) {
    return Socket(::fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  }
  return socket;
}

Socket new_socket() {
  Socket socket = above_standard_streams(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) {
    throw SocketError(text("a socket: ", std::strerror(errno)));
  }
  return socket;
}

std::string to_text(const in_addr& address) {
  char name[INET_ADDRSTRLEN] = "";
  ::inet_ntop(AF_INET, &address, name, sizeof name);
  return name;
}

std::optional<in_addr> parse_address(const std::string& numeric) {
  in_addr address{};
  return ::inet_pton(AF_INET, numeric.c_str(), &address) == 1 ? std::optional(address)
                                                              : std::nullopt;
}

sockaddr_in socket_address(const std::string& numeric, int port) {
  const std::optional<in_addr> parsed = parse_address(numeric);
  if (!parsed) {
    throw SocketError(text("got '", numeric, "', expected a numeric IPv4 address"));
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr = *parsed;
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

sockaddr_in own_end(int file) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  ::getsockname(file, reinterpret_cast<sockaddr*>(&address), &length);
  return address;
}

}  // namespace

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Socket::Socket(Socket&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

Socket::~Socket() { close(); }

void Socket::close() {
  if (file_ >= 0) {
    ::close(std::exchange(file_, -1));
  }
}

int64_t Socket::send_some(const void* data, size_t bytes) {
  const auto sent = ::send(file_, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent >= 0 ? sent : would_wait() ? 0 : -1;
}

int64_t Socket::receive_some(void* data, size_t bytes) {
  const auto received = ::recv(file_, data, bytes, MSG_DONTWAIT);
  return received > 0 ? received : received < 0 && would_wait() ? 0 : -1;
}

void Socket::send_all(const void* data, size_t bytes, double deadline) {
  const auto* at = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const int64_t sent = send_some(at, bytes);
    if (sent < 0) {
      throw SocketError("the other end is gone");
    }
    at += sent;
    bytes -= static_cast<size_t>(sent);
    if (sent == 0 && !wait_for(file_, POLLOUT, deadline - monotonic_seconds())) {
      throw SocketError("the other end does not read");
    }
  }
}

int Socket::port() const { return ntohs(own_end(file_).sin_port); }

std::string Socket::address() const { return to_text(own_end(file_).sin_addr); }

bool Socket::wait_readable(double seconds) const { return wait_for(file_, POLLIN, seconds); }

bool Socket::is_listening() const {
  int listening = 0;
  socklen_t length = sizeof listening;
  return ::getsockopt(file_, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) == 0 && listening != 0;
}

std::string host_name() {
  char name[64] = "";
  ::gethostname(name, sizeof name - 1);
  for (char& c : name) {
    c = c == 0 || (c > ' ' && c < 127) ? c : '?';
  }
  return name;
}

struct AddressLookup::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::string address, error;

  void look_up(const std::string& host) {
    addrinfo hints{};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int status = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
    const std::lock_guard lock(mutex);
    if (status == 0) {
      sockaddr_in first{};
      std::memcpy(&first, found->ai_addr, sizeof first);
      ::freeaddrinfo(found);
      address = to_text(first.sin_addr);
    } else {
      error = text("the address of '", host, "': ", ::gai_strerror(status));
    }
    done = true;
    changed.notify_all();
  }
};

AddressLookup::AddressLookup(const std::string& host) : state_(std::make_shared<State>()) {
  if (const std::optional<in_addr> numeric = parse_address(host)) {
    state_->address = to_text(*numeric);
    state_->done = true;
    return;
  }
  try {
    std::thread([state = state_, host] { state->look_up(host); }).detach();
  } catch (const std::system_error& error) {
    throw SocketError(text("the address of '", host, "': a thread: ", error.code().message()));
  }
}

std::string AddressLookup::address(double seconds) const {
  std::unique_lock lock(state_->mutex);
  if (seconds > 0) {
    state_->changed.wait_for(lock, std::chrono::duration<double>(seconds),
                             [&] { return state_->done; });
  }
  if (!state_->error.empty()) {
    throw SocketError(state_->error);
  }
  return state_->address;
}

std::string numeric_address(const std::string& host, double seconds) {
  std::string address = AddressLookup(host).address(seconds);
  if (address.empty()) {
    throw SocketError(text("the address of '", host, "': no answer in ", seconds, " s"));
  }
  return address;
}

std::string address_of_interface(const std::string& interface_or_address) {
  const std::optional<in_addr> numeric = parse_address(interface_or_address);
  in_addr address = numeric.value_or(in_addr{});
  bool found = numeric.has_value();
  ifaddrs* all = nullptr;
  if (!found && ::getifaddrs(&all) == 0) {
    for (const ifaddrs* at = all; at != nullptr && !found; at = at->ifa_next) {
      if (at->ifa_addr != nullptr && at->ifa_addr->sa_family == AF_INET &&
          at->ifa_name == interface_or_address) {
        sockaddr_in own{};
        std::memcpy(&own, at->ifa_addr, sizeof own);
        address = own.sin_addr;
        found = true;
      }
    }
    ::freeifaddrs(all);
  }
  if (!found || address.s_addr == INADDR_ANY || address.s_addr == INADDR_BROADCAST) {
    throw SocketError(text("got '", interface_or_address,
                           "', expected an interface of this machine that has an IPv4 address, or "
                           "one IPv4 address of it"));
  }
  return to_text(address);
}

bool is_loopback(const std::string& numeric_address) { return numeric_address.starts_with("127."); }

Socket listen_at(const std::string& host, int port) {
  constexpr int kBacklog = 4096;  // connections that nobody has accepted yet
  const sockaddr_in address = socket_address(host, port);
  if (address.sin_addr.s_addr == INADDR_ANY) {
    throw SocketError(text("listening at ", host,
                           ": that is every address of this machine; name "
                           "one, or an interface, in BINADE_LISTEN"));
  }
  Socket socket = new_socket();
  const int on = 1;
  ::setsockopt(socket.file(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.file(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.file(), kBacklog) != 0) {
    throw SocketError(text("listening at ", host, " port ", port, ": ", std::strerror(errno),
                           "; BINADE_PORT names another port"));
  }
  prepare(socket.file());
  return socket;
}

Socket accept_from(const Socket& listener, int& error) {
  error = 0;
  // The new socket inherits TCP_NODELAY from the listener.
  Socket socket = above_standard_streams(
      ::accept4(listener.file(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket && !would_wait() && errno != ECONNABORTED) {
    const int failure = errno;
    // Linux takes a descriptor before it checks whether a connection is waiting.
    error = wait_for(listener.file(), POLLIN, 0) ? failure : 0;
  }
  return socket;
}

Socket begin_connect(const std::string& address, int port) {
  const sockaddr_in there = socket_address(address, port);
  Socket socket = new_socket();
  prepare(socket.file());
  if (::connect(socket.file(), reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0 &&
      errno != EINPROGRESS) {
    throw SocketError(std::strerror(errno));
  }
  return socket;
}

bool is_connected(const Socket& socket) {
  if (!wait_for(socket.file(), POLLOUT, 0)) {
    return false;
  }
  int status = 0;
  socklen_t length = sizeof status;
  ::getsockopt(socket.file(), SOL_SOCKET, SO_ERROR, &status, &length);
  if (status != 0) {
    throw SocketError(std::strerror(status));
  }
  return true;
}

}  // namespace binade::dist
