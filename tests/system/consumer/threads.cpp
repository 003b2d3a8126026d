// Eight threads infer with one model; every result has the bits of one thread alone.
#include <atomic>
#include <thread>

#include "expect.h"
using namespace binade;

int main() {
  manual_seed(13);
  nn::CNN net({.height = 16, .width = 16});
  net.eval();
  std::vector<Tensor> inputs, expected;
  {
    const NoGradGuard guard;
    for (int i = 0; i < 8; ++i) {
      inputs.push_back(randn({2, 1, 16, 16}));
      expected.push_back(net(inputs.back()));
    }
  }
  std::atomic<int> same = 0;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < inputs.size(); ++i) {
    threads.emplace_back([&, i] {
      const NoGradGuard guard;  // of this thread
      for (int repeat = 0; repeat < 5; ++repeat) {
        same += equal(net(inputs[i]), expected[i]);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT(same == 40);
}
