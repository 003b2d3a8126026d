// Runs a kernel on the executor directly, without the fake CUDA runtime.
#pragma once
#include <binade/kernels/host/checks.h>
#include <binade/kernels/host/executor.h>
#include <binade/kernels/host/primitives.h>

namespace binade::kernels::host {

template <class... P, class... A>
void run(const Grid& grid, void (*kernel)(P...), A&&... arguments) {
  auto bound = [kernel](P... values) { return [=] { kernel(values...); }; };
  KernelThread(bound(static_cast<P>(std::forward<A>(arguments))...)).run(grid);
}

// Sets options() for a scope.
class WithOptions {
 public:
  explicit WithOptions(const Options& wanted) : before_(options()) { options() = wanted; }
  ~WithOptions() { options() = before_; }
  WithOptions(const WithOptions&) = delete;
  WithOptions& operator=(const WithOptions&) = delete;

 private:
  Options before_;
};

// Sets check_options() for a scope.
class WithChecks {
 public:
  explicit WithChecks(const CheckOptions& wanted) : before_(check_options()) {
    check_options() = wanted;
  }
  ~WithChecks() { check_options() = before_; }
  WithChecks(const WithChecks&) = delete;
  WithChecks& operator=(const WithChecks&) = delete;

 private:
  CheckOptions before_;
};

}  // namespace binade::kernels::host
