// Collects the results of tasks that run in parallel.
#pragma once
#include <exception>
#include <future>
#include <vector>

namespace binade::lab {

// Waits for all tasks even if one throws, because they use the caller's data. Throws the first
// error.
template <class T>
std::vector<T> results_of(std::vector<std::future<T>>& started) {
  std::vector<T> results;
  std::exception_ptr error;
  for (std::future<T>& one : started) {
    try {
      results.push_back(one.get());
    } catch (...) {
      error = error == nullptr ? std::current_exception() : error;
    }
  }
  if (error != nullptr) {
    std::rethrow_exception(error);
  }
  return results;
}

}  // namespace binade::lab
