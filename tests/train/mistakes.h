// Mistakes of beginners. Each must give one error, or one warning if the program may be right, that
// names the op, what it got, what it expected, and what to do. These are the columns of a table.
#pragma once
#include <binade/binade.h>
#include <gtest/gtest.h>

#include <functional>

// The user's program is outside of Binade's namespaces.
namespace mistakes {

namespace nn = binade::nn;
namespace optim = binade::optim;
namespace train = binade::train;
using binade::cat;
using binade::Device;
using binade::Dims;
using binade::DType;
using binade::mean;
using binade::Precision;
using binade::randint;
using binade::randn;
using binade::StepOutcome;
using binade::sum;
using binade::Tensor;

struct Mistake {
  const char* what;
  std::function<void()> run;
  const char *op, *got, *expected, *advice;
};
using Mistakes = std::vector<Mistake>;

struct Net : nn::Module {
  nn::Conv2d conv{*this, "conv", {.in = 3, .out = 4, .kernel = 3}};
  nn::Linear fc{*this, "fc", {.in = 4, .out = 2}};
  Tensor forward(const Tensor& x) override { return fc(mean(relu(conv(x)), {2, 3})); }
};
inline Tensor images() { return randn({2, 3, 8, 8}); }
inline Tensor labels(std::initializer_list<int64_t> values) {
  return Tensor::from<int64_t>(values);
}
inline Tensor leaf() { return randn({3}).require_grad(); }

inline std::string message_of(const Mistake& mistake) {
  std::vector<std::string> messages;
  const auto before =
      binade::set_warning_handler([&](const std::string& text) { messages.push_back(text); });
  try {
    mistake.run();
  } catch (const binade::Error& error) {
    messages.emplace_back(error.what());
  }
  binade::set_warning_handler(before);
  EXPECT_EQ(messages.size(), 1u) << mistake.what;  // exactly one
  return messages.empty() ? "" : messages[0];
}

// Returns the number of mistakes.
inline size_t expect_messages(const std::vector<Mistakes>& tables) {
  size_t count = 0;
  for (const Mistakes& table : tables) {
    for (const Mistake& mistake : table) {
      const std::string message = message_of(mistake);
      for (const char* part : {mistake.op, mistake.got, mistake.expected, mistake.advice}) {
        EXPECT_NE(message.find(part), std::string::npos)
            << mistake.what << "\n  lacks: " << part << "\n  says:  " << message;
      }
      ++count;
    }
  }
  return count;
}

}  // namespace mistakes
