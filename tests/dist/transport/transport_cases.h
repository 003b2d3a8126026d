// The requirements of every transport. All ranks run each function; it throws on a failure.
#pragma once
#include <binade/dist/transport/transport.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace binade::dist {

// Every rank sends to the next and receives from the previous one in one group, with sizes from 0
// to more than any buffer in between.
inline void pass_on(Transport& t) {
  const int next = (t.rank() + 1) % t.size(), before = (t.rank() + t.size() - 1) % t.size();
  for (const size_t bytes : {size_t(0), size_t(1), size_t(7), size_t(100'003), size_t(3 << 20)}) {
    std::vector<char> out(bytes + 1, static_cast<char>(t.rank())), in(bytes + 1, 'x');
    t.group_start();
    if (t.size() > 1) {
      t.send(next, out.data(), bytes);
      t.receive(before, in.data(), bytes);
    }
    t.wait(t.group_end());
    for (size_t i = 0; i < bytes && t.size() > 1; ++i) {
      check(in[i] == static_cast<char>(before), "byte ", i, " of ", bytes, " is wrong");
    }
    check(in[bytes] == 'x', "wrote behind the end of ", bytes, " bytes");
  }
}

// Many groups in flight between all pairs must arrive in order.
inline void keep_order(Transport& t) {
  constexpr int kMessages = 40;
  const auto size = static_cast<size_t>(t.size());
  std::vector<std::vector<int>> in(size, std::vector<int>(kMessages, -1));
  std::vector<int> out(kMessages);
  std::vector<uint64_t> tickets;
  for (int i = 0; i < kMessages; ++i) {
    out[static_cast<size_t>(i)] = 1000 * t.rank() + i;
    t.group_start();
    for (int peer = 0; peer < t.size(); ++peer) {
      if (peer != t.rank()) {
        t.send(peer, &out[static_cast<size_t>(i)], sizeof(int));
        t.receive(peer, &in[static_cast<size_t>(peer)][static_cast<size_t>(i)], sizeof(int));
      }
    }
    tickets.push_back(t.group_end());
  }
  t.wait(tickets[kMessages / 2]);
  t.wait(tickets.back());
  for (int peer = 0; peer < t.size(); ++peer) {
    for (int i = 0; i < kMessages && peer != t.rank(); ++i) {
      const int got = in[static_cast<size_t>(peer)][static_cast<size_t>(i)];
      check(got == 1000 * peer + i, "message ", i, " of rank ", peer, " is ", got);
    }
  }
}

// Splits off odd and even ranks, in reverse order, while the whole group exchanges messages.
inline void split_in_two(Transport& t) {
  std::vector<int> members;
  for (int rank = t.size() - 1; rank >= 0; --rank) {
    if (rank % 2 == t.rank() % 2) {
      members.push_back(rank);
    }
  }
  const auto part = t.split(members);
  check(part->size() == static_cast<int>(members.size()), "part has size ", part->size());
  check(members[static_cast<size_t>(part->rank())] == t.rank(), "part has rank ", part->rank());
  pass_on(*part);
  keep_order(t);
  const auto again = t.split(members);
  keep_order(*again);
  pass_on(*part);
}

// Runs two ranks: the second is idle for longer than the first one waits.
inline void wait_for_a_late_rank(Transport& t) {
  t.set_timeout(0.1);
  char byte = 0;
  t.group_start();
  if (t.rank() == 0) {
    t.receive(1, &byte, 1);
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  t.wait(t.group_end());
}

}  // namespace binade::dist
