#include <binade/core/io/json_text.h>
#include <binade/core/observe/chrome_trace.h>
#include <binade/kernels/base/error.h>

#include <cstdio>

namespace binade {
namespace {

std::string microseconds(double seconds) {
  char out[32];
  std::snprintf(out, sizeof out, "%.3f", seconds * 1e6);
  return out;
}

}  // namespace

std::string chrome_trace(std::span<const std::string> rows, std::span<const TraceSpan> spans) {
  std::string json = "{\"traceEvents\": [";
  const char* separator = "\n";
  for (size_t row = 0; row < rows.size(); ++row) {
    json += text(separator, "{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": 0, \"tid\": ", row,
                 ", \"args\": {\"name\": ", json_quoted(rows[row]), "}}");
    separator = ",\n";
  }
  for (const TraceSpan& span : spans) {
    check(span.row >= 0 && span.row < static_cast<int>(rows.size()) && span.end >= span.begin,
          "trace: got '", span.name, "' in row ", span.row, " from ", span.begin, " to ", span.end,
          " s, expected one of ", rows.size(), " rows and an end after the begin");
    json += text(separator, "{\"ph\": \"X\", \"name\": ", json_quoted(span.name),
                 ", \"pid\": 0, \"tid\": ", span.row, ", \"ts\": ", microseconds(span.begin),
                 ", \"dur\": ", microseconds(span.end - span.begin), "}");
    separator = ",\n";
  }
  return json + "\n]}\n";
}

}  // namespace binade
