#include <binade/core/observe/chrome_trace.h>
#include <gtest/gtest.h>
#include <tests/support/error_of.h>

namespace binade::chrome_trace_test {
namespace {

TEST(ChromeTrace, HasRowsAndSpans) {
  const std::vector<std::string> rows = {"back\"ward", "link"};
  const std::vector<TraceSpan> spans = {{"mul", 0, 0.5, 0.75}, {"bucket 0", 1, 1, 1}};
  EXPECT_EQ(chrome_trace(rows, spans), R"({"traceEvents": [
{"ph": "M", "name": "thread_name", "pid": 0, "tid": 0, "args": {"name": "back\"ward"}},
{"ph": "M", "name": "thread_name", "pid": 0, "tid": 1, "args": {"name": "link"}},
{"ph": "X", "name": "mul", "pid": 0, "tid": 0, "ts": 500000.000, "dur": 250000.000},
{"ph": "X", "name": "bucket 0", "pid": 0, "tid": 1, "ts": 1000000.000, "dur": 0.000}
]}
)");
  EXPECT_EQ(chrome_trace({}, {}), "{\"traceEvents\": [\n]}\n");
}

TEST(ChromeTrace, NamesASpanThatDoesNotFit) {
  const std::vector<std::string> rows = {"a"};
  for (const TraceSpan& bad : {TraceSpan{"x", 1, 0, 1}, TraceSpan{"x", 0, 1, 0.5}}) {
    EXPECT_NE(error_of([&] {
                chrome_trace(rows, {&bad, 1});
              }).find("trace: got 'x' in row"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace binade::chrome_trace_test
