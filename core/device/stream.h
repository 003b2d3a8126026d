// Streams, events and their guards. A stream is an in-order queue of work on a device; work of
// different streams runs in any order unless an event orders it. Kernels and copies run on the
// calling thread's current stream of the device, initially its null stream.
#pragma once
#include <binade/kernels/base/stream.h>

#include <memory>

namespace binade {

using kernels::StreamHandle;  // of the CUDA runtime

class Event;

class Stream {
 public:
  enum Priority : uint8_t { normal, high };

  // A new stream; its queued work still runs after the last copy of this handle is gone.
  explicit Stream(Device device, Priority priority = normal);
  static Stream current(Device device);  // of the calling thread

  Device device() const { return device_; }
  StreamHandle handle() const { return handle_; }
  bool operator==(const Stream& other) const {
    return device_ == other.device_ && handle_ == other.handle_;
  }

  void wait(const Event& event) const;  // work queued from now on runs after the event
  void synchronize() const;             // the host waits for all queued work
  bool done() const;

 private:
  Stream(Device device, StreamHandle handle) : device_(device), handle_(handle) {}
  Device device_;
  StreamHandle handle_;
  std::shared_ptr<void> owner_;
};

// A point in a stream.
class Event {
 public:
  explicit Event(Device device, bool timing = false);
  Event(Event&&) noexcept = default;
  Event& operator=(Event&&) noexcept = default;

  void record() { record(Stream::current(device_)); }
  void record(const Stream& stream);
  // True for an event that was never recorded.
  bool done() const;
  void synchronize() const;
  // Milliseconds from `start` to this event; both must be recorded with timing, and done.
  double since(const Event& start) const;
  Device device() const { return device_; }
  void* handle() const { return handle_.get(); }

 private:
  Device device_;
  std::unique_ptr<void, void (*)(void*)> handle_;
};

// Makes a stream the current one of its device for this thread.
class StreamGuard {
 public:
  explicit StreamGuard(const Stream& stream)
      : device_(stream.device()), stream_(stream), before_(kernels::current_stream(device_)) {
    kernels::set_current_stream(device_, stream.handle());
  }
  ~StreamGuard() { kernels::set_current_stream(device_, before_); }
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  Device device_;
  Stream stream_;  // keeps it
  StreamHandle before_;
};

// Makes a device current for CUDA calls of this thread, for code that calls CUDA itself. Binade
// selects the device of its operands by itself.
class DeviceGuard {
 public:
  explicit DeviceGuard(Device device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  Device before_;
};

}  // namespace binade
