// A transport whose messages take as long as over a slower link. It shows on one machine how a
// program behaves on many. The bytes that a rank sends leave one after another at the link's
// bandwidth and arrive after its latency; receiving does not slow down sending.
//
// Each message carries its arrival time by the monotonic clock, because the ranks share a machine.
#pragma once
#include <binade/dist/transport/transport.h>

#include <string>

namespace binade::dist {

struct LinkDelay {
  double latency = 0;           // seconds
  double bytes_per_second = 0;  // 0: no limit

  bool none() const { return latency == 0 && bytes_per_second == 0; }
};
// Parses "0.5" or "0.5,100": milliseconds and MB/s, the format of BINADE_LINK_DELAY. Empty: no
// delay. Throws Error on anything else.
LinkDelay parse_link_delay(const std::string& text);

// `inner` with that delay, or itself if there is none. Its splits share the link. Throws Error if
// inner carries device memory.
std::shared_ptr<Transport> with_delay(std::shared_ptr<Transport> inner, const LinkDelay& link);

}  // namespace binade::dist
