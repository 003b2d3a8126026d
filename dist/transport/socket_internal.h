// TCP sockets with deadlines. Errors are SocketError, with the address and the system's reason.
//
// A socket listens at one address of this machine, never at all of them. listen_at() enforces this,
// and nothing else in the library calls listen().
#pragma once
#include <binade/kernels/base/error.h>

#include <cstddef>
#include <memory>
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
// The search for the numeric IPv4 address of a host. The system's search has no deadline, so a name
// is looked up in a thread of its own, which may outlive this object.
class AddressLookup {
 public:
  explicit AddressLookup(const std::string& host);
  // Waits at most `seconds`. Returns the address, or an empty text if it is not known yet. Throws
  // SocketError if the host has none.
  std::string address(double seconds = 0) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};
// The numeric IPv4 address of a host. Throws SocketError if it has none, or after `seconds`.
std::string numeric_address(const std::string& host, double seconds = 10);
// The numeric address of an interface of this machine ("eth0"); an address stays as it is. Throws
// SocketError if there is no such interface, or for an address that stands for several (0.0.0.0).
std::string address_of_interface(const std::string& interface_or_address);
bool is_loopback(const std::string& numeric_address);

// Listens at one numeric address of this machine and a port (0: any free one). Throws SocketError,
// also for an address that stands for all of the machine's.
Socket listen_at(const std::string& host, int port);
// The next connection, or none if no peer waits (error: 0) or it cannot be taken (error: errno).
// Non-blocking, with TCP_NODELAY.
Socket accept_from(const Socket& listener, int& error);
// Begins to connect to a numeric address. Throws SocketError if that fails at once.
Socket begin_connect(const std::string& address, int port);
// True once a connection that was begun is established. Throws SocketError if it failed.
bool is_connected(const Socket& socket);

}  // namespace binade::dist
