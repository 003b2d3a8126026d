// Runs a function as every rank of a group of threads.
#pragma once
#include <binade/dist/transport/thread_transport.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace binade::dist {

// Returns the error of each rank; empty for a rank that returned.
inline std::vector<std::string> run_ranks(int size, const std::function<void(Transport&)>& body) {
  const auto hub = make_thread_hub(size);
  std::vector<std::unique_ptr<Transport>> ends;
  for (int rank = 0; rank < size; ++rank) {
    ends.push_back(make_thread_transport(hub, rank));
  }
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank, end = std::move(ends[static_cast<size_t>(rank)])]() mutable {
      try {
        body(*end);
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = error.what();
      }
      end.reset();
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return errors;
}

inline void expect_no_errors(const std::vector<std::string>& errors) {
  for (size_t rank = 0; rank < errors.size(); ++rank) {
    EXPECT_EQ(errors[rank], "") << "rank " << rank;
  }
}

}  // namespace binade::dist
