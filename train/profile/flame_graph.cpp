// A flame graph as SVG (Gregg, "The Flame Graph", CACM 59(6), 2016): boxes below their parents, as
// wide as their time.
#include <binade/core/io/json_text.h>
#include <binade/kernels/base/error.h>
#include <binade/train/profile/trace_rows_internal.h>
#include <binade/train/profile/trace_tables.h>
#include <binade/train/report/numbers_internal.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>

namespace binade::train {
namespace {

using Kind = TimelineEvent::Kind;

constexpr double kWidth = 1200, kRow = 18, kLetter = 6.6, kTop = 26, kNarrowest = 0.3;

struct Box {
  double own = 0, total = 0;  // milliseconds per step
  std::map<std::string, Box> children;
};

double sum_up(Box& box) {
  box.total = box.own;
  for (auto& child : box.children) {
    box.total += sum_up(child.second);
  }
  return box.total;
}

size_t depth_of(const Box& box) {
  size_t deepest = 0;
  for (const auto& child : box.children) {
    deepest = std::max(deepest, depth_of(child.second));
  }
  return deepest + 1;
}

Box& below(Box& box, const std::string& path) {
  constexpr int kMostLevels = 64;  // deeper modules share the box of the last one
  Box* at = &box;
  int level = 0;
  for (size_t begin = 0; begin < path.size() && level < kMostLevels; ++level) {
    const size_t end = std::min(path.find('.', begin), path.size());
    at = &at->children[path.substr(begin, end - begin)];
    begin = end + 1;
  }
  return *at;
}

Box boxes_of(const Trace& trace) {
  const std::vector<double> self = self_times(trace);
  const double scale = 1e-3 / std::max<double>(1, static_cast<double>(trace.steps().size()));
  Box root;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& event = trace.events[i];
    if (event.lane != 0) {
      continue;
    }
    const double time = self[i] * scale;
    if (event.kind == Kind::step) {
      root.own += time;
    } else if (event.kind == Kind::phase) {
      root.children[event.name].own += time;
    } else {
      const std::string phase = event.phase.empty() ? "other" : event.phase;
      below(root.children[phase], event.module).children[event.name].own += time;
    }
  }
  sum_up(root);
  return root;
}

std::string svg_escaped(const std::string& s) {
  std::string out;
  for (const char c : s) {
    const bool is_control = static_cast<unsigned char>(c) < ' ';  // not allowed in XML
    out += is_control ? "?"
           : c == '<' ? "&lt;"
           : c == '>' ? "&gt;"
           : c == '&' ? "&amp;"
           : c == '"' ? "&quot;"
                      : std::string(1, c);
  }
  return out;
}

// A warm colour of the name: the same box has the same colour in every graph.
std::string color_of(const std::string& name) {
  const size_t hash = std::hash<std::string>()(name);
  return text("hsl(", 12 + hash % 38, " 85% ", 62 + hash / 64 % 14, "%)");
}

// How wide a millisecond is, and the time of the whole graph.
struct Scale {
  double width, whole;
};

void draw(const Box& box, const std::string& name, double x, size_t level, const Scale& scale,
          std::string& out) {
  const double whole = scale.whole;
  const double width = box.total * scale.width, y = kTop + static_cast<double>(level) * kRow;
  if (width < kNarrowest) {
    return;
  }
  const auto letters = static_cast<size_t>(std::max((width - 6) / kLetter, 0.0));
  std::string shown = name.substr(0, utf8_prefix(name.substr(0, letters)));
  shown = letters < 3 ? "" : shown;
  out += text("<g><title>", svg_escaped(name), ": ", fixed(box.total, 3), " ms, ",
              fixed(whole > 0 ? 100 * box.total / whole : 0, 1), "%</title><rect x=\"", fixed(x, 2),
              "\" y=\"", fixed(y, 0), "\" width=\"", fixed(width, 2), "\" height=\"",
              fixed(kRow - 1, 0), "\" fill=\"", color_of(name), "\"/>");
  if (!shown.empty()) {
    out += text("<text x=\"", fixed(x + 3, 2), "\" y=\"", fixed(y + 13, 0), "\">",
                svg_escaped(shown), "</text>");
  }
  out += "</g>\n";
  std::vector<const std::pair<const std::string, Box>*> children;
  for (const auto& child : box.children) {
    children.push_back(&child);
  }
  std::stable_sort(children.begin(), children.end(),
                   [](const auto* a, const auto* b) { return a->second.total > b->second.total; });
  for (const auto* child : children) {
    draw(child->second, child->first, x, level + 1, scale, out);
    x += child->second.total * scale.width;
  }
}

}  // namespace

std::string flame_graph(const Trace& trace) {
  const Box root = boxes_of(trace);
  const double height = kTop + static_cast<double>(depth_of(root)) * kRow + 8;
  std::string out = text(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", fixed(kWidth, 0), " ",
      fixed(height, 0), "\" width=\"", fixed(kWidth, 0), "\" height=\"", fixed(height, 0),
      "\" role=\"img\"><title>Flame graph of a step</title><style>text{font:11px "
      "monospace;fill:#222}.head{font:14px sans-serif;fill:#555}@media(prefers-color-scheme:dark){"
      ".head{fill:#bbb}}</style>\n<text class=\"head\" x=\"3\" y=\"17\">A step: ",
      fixed(root.total, 3), " ms, mean of ", trace.steps().size(), "</text>\n");
  draw(root, "step", 0, 0, {root.total > 0 ? kWidth / root.total : 0, root.total}, out);
  return out + "</svg>\n";
}

}  // namespace binade::train
