#include <arpa/inet.h>
#include <binade/dist/transport/socket_internal.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
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

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses resolve(const std::string& host, int port, bool passive) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = passive ? AI_PASSIVE : 0;
  addrinfo* found = nullptr;
  const int status = ::getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                   std::to_string(port).c_str(), &hints, &found);
  if (status != 0) {
    throw SocketError(text("the address of '", host, "': ", ::gai_strerror(status)));
  }
  return {found, &::freeaddrinfo};
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

void Socket::receive_all(void* data, size_t bytes, double deadline) {
  auto* at = static_cast<std::byte*>(data);
  while (bytes > 0) {
    const int64_t received = receive_some(at, bytes);
    if (received < 0) {
      throw SocketError("the other end is gone");
    }
    at += received;
    bytes -= static_cast<size_t>(received);
    if (received == 0 && !wait_for(file_, POLLIN, deadline - monotonic_seconds())) {
      throw SocketError("the other end does not answer");
    }
  }
}

int Socket::port() const {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  ::getsockname(file_, reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.sin_port);
}

std::string Socket::peer() const {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  ::getpeername(file_, reinterpret_cast<sockaddr*>(&address), &length);
  char name[INET_ADDRSTRLEN] = "";
  ::inet_ntop(AF_INET, &address.sin_addr, name, sizeof name);
  return name;
}

bool Socket::wait_readable(double seconds) const { return wait_for(file_, POLLIN, seconds); }

Socket listen_at(const std::string& host, int port, int backlog) {
  const Addresses found = resolve(host, port, true);
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(socket.file(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.file(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(socket.file(), backlog) != 0) {
    throw SocketError(text("listening at ", host.empty() ? "any address" : host, " port ", port,
                           ": ", std::strerror(errno), "; BINADE_PORT names another port"));
  }
  prepare(socket.file());
  return socket;
}

Socket accept_from(const Socket& listener, double seconds) {
  if (!listener.wait_readable(seconds)) {
    return {};
  }
  Socket socket(::accept4(listener.file(), nullptr, nullptr, SOCK_CLOEXEC));
  if (socket) {
    prepare(socket.file());
  }
  return socket;
}

Socket connect_to(const std::string& host, int port, double deadline) {
  std::string reason;
  for (double pause = 0.01; monotonic_seconds() < deadline; pause = std::min(pause * 2, 0.5)) {
    try {
      const Addresses found = resolve(host, port, false);
      Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      prepare(socket.file());
      int status = ::connect(socket.file(), found->ai_addr, found->ai_addrlen) == 0 ? 0 : errno;
      if (status == EINPROGRESS) {
        status = ETIMEDOUT;
        if (wait_for(socket.file(), POLLOUT, deadline - monotonic_seconds())) {
          socklen_t length = sizeof status;
          ::getsockopt(socket.file(), SOL_SOCKET, SO_ERROR, &status, &length);
        }
      }
      if (status == 0) {
        return socket;
      }
      reason = std::strerror(status);
    } catch (const SocketError& error) {
      reason = error.what();
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(pause));
  }
  throw SocketError(text("no connection to ", host, " port ", port, ": ", reason));
}

}  // namespace binade::dist
