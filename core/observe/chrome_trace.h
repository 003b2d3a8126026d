// Traces for chrome://tracing and Perfetto: rows of spans, as JSON of the Trace Event Format.
#pragma once
#include <span>
#include <string>
#include <vector>

namespace binade {

struct TraceSpan {
  std::string name;
  int row = 0;
  double begin = 0, end = 0;  // seconds
};

// Row i has the name rows[i]. Throws Error for a span with an unknown row, or a span that ends
// before it begins.
std::string chrome_trace(std::span<const std::string> rows, std::span<const TraceSpan> spans);

}  // namespace binade
