// Tests the source lines of ops in a profile. This file is compiled with debug information.
#include <binade/binade.h>
#include <binade/core/observe/call_stack_internal.h>
#include <binade/train/profile/trace_tables.h>
#include <binade/train/profiler.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace {

int first_line = 0, second_line = 0;

binade::Tensor two_lines(const binade::Tensor& x) {
  const binade::Tensor y = exp(x);
  first_line = __LINE__ - 1;
  binade::Tensor z = y * x;
  second_line = __LINE__ - 1;
  return z;
}

struct LineNet : binade::nn::Module {
  LineNet() { register_module("layer", layer); }
  binade::Tensor forward(const binade::Tensor& x) override {
    binade::Tensor y = layer(x);
    line = __LINE__ - 1;
    return y;
  }
  binade::nn::Linear layer{{.in = 3, .out = 2}};
  int line = 0;
};

}  // namespace

namespace binade::train::op_lines_test {
namespace {

using kernels::SourceFrame;
using kernels::SourceFrames;

Trace trace_of(const std::function<void()>& body, Activities activities = kEveryActivity) {
  Profiler profiler({.activities = activities, .measure_roofline = false});
  profiler.record();
  body();
  profiler.finish();
  return profiler.trace();
}

std::set<std::string> lines_of(const Trace& trace, const std::string& op, bool backward) {
  std::set<std::string> lines;
  for (const TraceEvent& event : trace.events) {
    if (event.kind == TimelineEvent::op && event.name == op && event.backward == backward) {
      lines.insert(event.line);
    }
  }
  return lines;
}

std::string this_file(int line) { return text("tests/train/op_lines_test.cpp:", line); }

void expect_line(const Trace& trace, const std::string& op, bool backward, int line) {
  const std::set<std::string> lines = lines_of(trace, op, backward);
  ASSERT_EQ(lines.size(), 1U) << op;
  EXPECT_TRUE(lines.begin()->ends_with(this_file(line))) << *lines.begin() << " of " << op;
}

TEST(OpLines, NamesTheLineOfEachOpForwardAndBackward) {
  const Tensor x = randn({5, 7}).require_grad(), weights = randn({5, 7});
  const Trace trace = trace_of([&] { two_lines(x).backward(weights); });
  for (const bool backward : {false, true}) {
    expect_line(trace, "exp", backward, first_line);
    expect_line(trace, "mul", backward, second_line);
  }
  std::set<std::string> named;
  for (const TraceRow& row : rows_by_line(trace)) {
    named.insert(row.detail);
    EXPECT_NE(row.name.find("op_lines_test.cpp:"), std::string::npos) << row.name;
  }
  EXPECT_EQ(named, (std::set<std::string>{"exp", "exp backward", "mul", "mul backward"}));
  const std::string json = trace_json(trace);
  EXPECT_NE(json.find(this_file(second_line) + "\""), std::string::npos) << json;
  EXPECT_EQ(parse_trace(json, "own"), trace);
}

TEST(OpLines, NamesTheLineThatCallsALayer) {
  LineNet net;
  const Trace trace = trace_of([&] { net(randn({4, 3})); });
  expect_line(trace, "linear", false, net.line);
}

TEST(OpLines, AreNotRecordedWithoutTheirActivity) {
  const Trace trace =
      trace_of([] { two_lines(randn({3})); },
               static_cast<Activities>(Activity::cpu) | static_cast<Activities>(Activity::memory));
  EXPECT_EQ(lines_of(trace, "exp", false), (std::set<std::string>{""}));
}

TEST(OpLines, AreTheInnermostOnesOfTheProgram) {
  const SourceFrames op{{{"binade::exp(binade::Tensor const&)", "/src/core/ops/pointwise.cpp", 9}}};
  const SourceFrames layer{{{"operator()", "/src/build/include/binade/nn/callable.h", 3},
                            {"binade::nn::Linear::forward", "/src/nn/linear.cpp", 20}}};
  const SourceFrames model{{{"binade::nn::Gpt2::forward", "/src/nn/gpt2.cpp", 70}}};
  const SourceFrames standard{{{"std::function<void ()>::operator()() const",
                                "/usr/lib/gcc/x/include/c++/12/bits/std_function.h", 591}}};
  const SourceFrames elsewhere{{{"binade::matmul(binade::Tensor const&)", "/old/core/ops/a.cpp", 1},
                                {"inlined", "/old/core/ops/a.cpp", 2}}};
  const SourceFrames sample{{{"binade::main_part()", "/src/samples/vae.cpp", 33}}};
  const SourceFrames program{{{"Net::forward(binade::Tensor const&)", "/home/core/net.cpp", 12}}};
  const auto line = [](std::vector<const SourceFrames*> calls) {
    return binade::detail::line_of_calls(calls, "/src/");
  };
  EXPECT_EQ(line({&op, &layer, &program, &sample}), "/home/core/net.cpp:12");
  EXPECT_EQ(line({&op, &layer, &model, &program}), "/src/nn/gpt2.cpp:70");
  EXPECT_EQ(line({&op, &standard, &elsewhere, &sample}), "/src/samples/vae.cpp:33");
  EXPECT_EQ(line({&op, &layer}), "");
}

TEST(OpLines, AreFunctionsWithoutDebugInformation) {
  const auto line = [](const std::string& function) {
    const SourceFrames op{{{"binade::Tensor binade::to<float>(binade::Tensor const&)", "", 0}}};
    const SourceFrames program{{{function, "", 0}}, "/home/me/demo", 0x1a2b};
    const SourceFrames* calls[] = {&op, &program};
    return binade::detail::line_of_calls(calls, "/src/");
  };
  EXPECT_EQ(line("Net::forward(binade::Tensor const&) const"), "Net::forward (demo+0x1a2b)");
  EXPECT_EQ(line("main"), "main (demo+0x1a2b)");
  EXPECT_EQ(line("main::{lambda(int)#1}::operator()(int) const"),
            "main::{lambda(int)#1}::operator() (demo+0x1a2b)");
  EXPECT_EQ(line("void std::__invoke_impl<void, int&>(int&)"), "");
  EXPECT_EQ(line("binade::Tensor binade::nn::Callable<Net>::run<int>(int)"), "");
  EXPECT_EQ(line(""), "");
  Trace trace;
  trace.events.push_back(
      {.kind = TimelineEvent::op, .name = "exp", .line = line("main"), .end = 5});
  EXPECT_NE(trace_tables(trace).find("no debug information there; compile with -g1"),
            std::string::npos);
}

}  // namespace
}  // namespace binade::train::op_lines_test
