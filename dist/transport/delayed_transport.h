// A transport whose messages take as long as over a slower link: to see on one machine how a
// program behaves on many. The bytes that a rank sends leave it one after another at the link's
// bandwidth and arrive its latency later; what a rank receives does not slow down what it sends.
//
// Each message carries the time at which it arrives, by the monotonic clock: ranks share a machine.
#pragma once
#include <binade/dist/transport/transport.h>

#include <string>

namespace binade::dist {

struct LinkDelay {
  double latency = 0;           // seconds
  double bytes_per_second = 0;  // 0: no limit

  bool none() const { return latency == 0 && bytes_per_second == 0; }
};
// "0.5" or "0.5,100": milliseconds and MB/s, as BINADE_LINK_DELAY has them. Empty: none. Throws
// Error on anything else.
LinkDelay parse_link_delay(const std::string& text);

// `inner` with that delay, or itself where there is none. Its splits share the link. Throws Error
// where inner carries memory of a device.
std::shared_ptr<Transport> with_delay(std::shared_ptr<Transport> inner, const LinkDelay& link);

}  // namespace binade::dist
