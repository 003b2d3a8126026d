// TCP sockets with deadlines. Errors are SocketError, with the address and the system's reason.
//
// The one policy of what listens: a socket listens at one address of this machine, never at all of
// them. listen_at() enforces it, and nothing else in the library calls listen().
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
  // Transfers everything until the deadline (monotonic_seconds). Throws SocketError.
  void send_all(const void* data, size_t bytes, double deadline);

  int port() const;             // of this end
  std::string address() const;  // of this end, numeric
  bool wait_readable(double seconds) const;
  bool is_listening() const;

 private:
  int file_ = -1;
};

// The name of this machine, without characters that separate words.
std::string host_name();
// The numeric IPv4 address of a host. Throws SocketError if it has none.
std::string numeric_address(const std::string& host);
// The numeric address of an interface of this machine ("eth0"); an address stays as it is. Throws
// SocketError if there is no such interface, or for an address that stands for several (0.0.0.0).
std::string address_of_interface(const std::string& interface_or_address);
bool is_loopback(const std::string& numeric_address);

// Listens at one address of this machine and a port (0: any free one). Throws SocketError, also for
// an address that stands for all of the machine's.
Socket listen_at(const std::string& host, int port);
// The next connection, or none if nobody waits (error: 0) or it cannot be taken (error: errno).
// Non-blocking, with TCP_NODELAY.
Socket accept_from(const Socket& listener, int& error);
// Begins to connect. Throws SocketError if that fails at once.
Socket begin_connect(const std::string& host, int port);
// Whether a connection that was begun is there. Throws SocketError if it failed.
bool is_connected(const Socket& socket);

}  // namespace binade::dist
