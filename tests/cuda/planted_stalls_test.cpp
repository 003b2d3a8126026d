// Waits for the device that are planted in real steps: each is what the adviser names first, with
// its line.
#include <binade/binade.h>
#include <binade/train/profile/stalls.h>
#include <binade/train/profiler.h>

#include "device_fixture.h"

namespace binade::train::planted_stalls_test {
namespace {

class PlantedDeviceStalls : public DeviceTest {};

struct WideNet : nn::Module {
  WideNet() {
    register_module("first", first);
    register_module("last", last);
  }
  Tensor forward(const Tensor& x) override { return last(relu(first(x))); }
  nn::Linear first{{.in = 96, .out = 64}};
  nn::Linear last{{.in = 64, .out = 10}};
};

// The first advice on steps of a net, whose loss goes to `plant`.
template <class Plant>
Advice advice_on(int64_t rows, Plant plant) {
  WideNet net;
  net.to(kDevice);
  optim::SGD sgd(net.parameters(), {.lr = 0.01});
  const Tensor x = randn({rows, 96}).to(kDevice), labels = full({rows}, 3, DType::i64).to(kDevice);
  Profiler profiler({.wait = 1, .warmup = 1, .active = 6, .measure_roofline = false});
  for (int i = 0; i < 8; ++i) {
    const Tensor loss = nn::cross_entropy(net(x), labels);
    plant(loss);
    loss.backward();
    static_cast<void>(sgd.step());
    profiler.step();
  }
  profiler.finish();
  const StallReport report = find_stalls({&profiler.trace(), 1});
  return report.advice.empty() ? Advice{.cause = "none", .sentence = to_text(report)}
                               : report.advice[0];
}

std::string line(int number) { return text("planted_stalls_test.cpp:", number); }

TEST_F(PlantedDeviceStalls, AnItemInEachStep) {
  double sum = 0;
  int where = 0;
  const Advice advice = advice_on(512, [&](const Tensor& loss) {
    where = __LINE__ + 1;
    sum += loss.item();
  });
  EXPECT_EQ(advice.cause, "host wait") << advice.sentence;
  EXPECT_TRUE(advice.where.ends_with(line(where))) << advice.where;
  EXPECT_NE(advice.sentence.find("item() at "), std::string::npos) << advice.sentence;
  EXPECT_GT(sum, 0);
}

TEST_F(PlantedDeviceStalls, ACopyOfPageableMemoryInEachStep) {
  const Tensor pictures = full({1 << 20}, 0.5);  // 4 MB that no PinnedBuffer holds
  int where = 0;
  const Advice advice = advice_on(512, [&](const Tensor&) {
    where = __LINE__ + 1;
    const Tensor there = pictures.to(kDevice);
  });
  EXPECT_EQ(advice.cause, "pageable copy") << advice.sentence;
  EXPECT_TRUE(advice.where.ends_with(line(where))) << advice.where;
}

}  // namespace
}  // namespace binade::train::planted_stalls_test
