// TCP sockets with deadlines. Errors are SocketError, with the address and the system's reason.
#pragma once
#include <binade/kernels/base/error.h>

#include <cstddef>
#include <string>

namespace binade::dist {

class SocketError : public Error {
 public:
  using Error::Error;
};

// Seconds of a monotonic clock.
double monotonic_seconds();

class Socket {
 public:
  Socket() = default;
  explicit Socket(int file) : file_(file) {}
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  int file() const { return file_; }
  explicit operator bool() const { return file_ >= 0; }
  void close();

  // Transfer what is possible without waiting. Return the bytes transferred, 0 if the call would
  // wait, -1 if the other end is gone.
  int64_t send_some(const void* data, size_t bytes);
  int64_t receive_some(void* data, size_t bytes);
  // Transfer everything until the deadline (monotonic_seconds). Throw SocketError.
  void send_all(const void* data, size_t bytes, double deadline);
  void receive_all(void* data, size_t bytes, double deadline);

  int port() const;          // of this end
  std::string peer() const;  // numeric address of the other end
  bool wait_readable(double seconds) const;

 private:
  int file_ = -1;
};

// Listens at a host's address ("" for all of this machine's) and port (0: any free one).
Socket listen_at(const std::string& host, int port, int backlog);
// The next connection, or none after `seconds`. Non-blocking, with TCP_NODELAY.
Socket accept_from(const Socket& listener, double seconds);
// Retries until the deadline, since the other end may not be listening yet.
Socket connect_to(const std::string& host, int port, double deadline);

}  // namespace binade::dist
