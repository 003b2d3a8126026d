// Runs a kernel on the executor directly, without the fake CUDA runtime.
#pragma once
#include <binade/kernels/host/primitives.h>

namespace binade::kernels::host {

template <class... P, class... A>
void run(const Grid& grid, void (*kernel)(P...), A&&... arguments) {
  auto bound = [kernel](P... values) { return [=] { kernel(values...); }; };
  auto thread = bound(static_cast<P>(std::forward<A>(arguments))...);
  run_grid(
      grid, [](void* context) { (*static_cast<decltype(thread)*>(context))(); }, &thread);
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

}  // namespace binade::kernels::host
