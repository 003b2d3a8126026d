// The heat map of a lens as one HTML file: an inline SVG per kind of tensor, and tables.
#include <binade/train/lens_report.h>
#include <binade/train/report/page.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace binade::train {
namespace {

using page::escaped;

constexpr int kCell = 8, kRow = 15, kLabel = 230, kTop = 18, kAxis = 18;

// The shade of a share as attributes, logarithmic over four decades. The style sheet has the
// colour (class h), which light and dark pages mix with their own paper.
std::string shade_style(double share) {
  const double depth = std::clamp(1 + std::log10(share) / 4, 0.04, 1.0);
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, " class=\"h\" fill-opacity=\"%.2f\"", depth);
  return buffer;
}

std::string cell_number(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.3g", value);
  return buffer;
}

std::string cells(const LensRow& row, const ExponentSpan& span, int y) {
  std::string out = text("<rect class=\"row\" x=\"", kLabel, "\" y=\"", y, "\" width=\"",
                         (span.most - span.least + 1) * kCell, "\" height=\"", kRow - 1, "\"/>");
  for (int e = span.least; e <= span.most; ++e) {
    const double share = elements_at(row, span, e) / std::max(row.elements, 1.0);
    if (share > 0) {
      out += text("<rect x=\"", kLabel + (e - span.least) * kCell, "\" y=\"", y, "\" width=\"",
                  kCell, "\" height=\"", kRow - 1, "\"", shade_style(share), "><title>",
                  escaped(row.tensor), ": 2^", e, e == span.least ? " and below" : "", ": ",
                  cell_number(100 * share), "%</title></rect>");
    }
  }
  return out;
}

// Lines at the exponents where f16 flushes, becomes subnormal and overflows.
std::string borders(const ExponentSpan& span, int height) {
  const struct {
    int exponent;
    const char* name;
  } all[] = {{-25, "0 in f16"}, {-14, "subnormal"}, {16, "inf"}};
  std::string out;
  for (const auto& border : all) {
    if (border.exponent >= span.least && border.exponent <= span.most + 1) {
      const int x = kLabel + (border.exponent - span.least) * kCell;
      out += text("<line x1=\"", x, "\" x2=\"", x, "\" y1=\"", kTop, "\" y2=\"", height,
                  "\" class=\"border\"/><text x=\"", border.exponent < 16 ? x - 4 : x + 4,
                  "\" y=\"12\" text-anchor=\"", border.exponent < 16 ? "end" : "start", "\">",
                  border.name, "</text>");
    }
  }
  return out;
}

// Writes the exponents below their columns.
std::string axis(const ExponentSpan& span, int y) {
  std::string out;
  for (int e = span.least; e <= span.most; ++e) {
    if (e % 5 == 0) {
      out += text("<text class=\"axis\" text-anchor=\"middle\" x=\"",
                  kLabel + (e - span.least) * kCell + kCell / 2, "\" y=\"", y + 13, "\">", e,
                  "</text>");
    }
  }
  return out;
}

std::string title_of(const std::string& kind) {  // "activation gradients"
  std::string title = kind + "s";
  std::replace(title.begin(), title.end(), '_', ' ');
  return title;
}

// The legend of the shades.
std::string legend() {
  std::string out = "<p class=\"wide\"><svg class=\"heat\" style=\"width:420px;height:18px\">";
  int x = 0;
  for (const auto& [share, name] :
       {std::pair(1e-4, "0.01%"), {1e-3, "0.1%"}, {1e-2, "1%"}, {0.1, "10%"}, {1.0, "100%"}}) {
    out += text("<rect x=\"", x, "\" y=\"2\" width=\"22\" height=\"14\"", shade_style(share),
                "/><text x=\"", x + 27, "\" y=\"13\">", name, "</text>");
    x += 84;
  }
  return out + "</svg></p>\n";
}

std::string figure(const LensReport& report, const std::string& kind, size_t most_rows) {
  const ExponentSpan span = span_of(report);
  std::string body;
  int y = kTop;
  size_t rows = 0;
  for (const LensRow& row : report.rows) {
    if (row.kind != kind || ++rows > most_rows) {
      continue;
    }
    const std::string name =
        row.tensor.size() > 33 ? "..." + row.tensor.substr(row.tensor.size() - 30) : row.tensor;
    body += text("<text x=\"0\" y=\"", y + 11, "\">", escaped(name), "</text>", cells(row, span, y),
                 "<text x=\"", kLabel + (span.most - span.least + 1) * kCell + 8, "\" y=\"", y + 11,
                 "\">", escaped(effects_of(row)), "</text>\n");
    y += kRow;
  }
  const int width = kLabel + (span.most - span.least + 1) * kCell + 480;
  const std::string title = escaped(title_of(kind));
  return text(
      "<figure><h3>", title, "</h3><div class=\"wide\" tabindex=\"0\"><svg class=\"heat\" ",
      "role=\"img\" aria-label=\"", title, "\" style=\"width:", width, "px;height:", y + kAxis,
      "px\">", body, borders(span, y), axis(span, y), "</svg></div>",
      rows > most_rows ? text("<p class=\"soft\">", rows - most_rows, " more in lens.html</p>")
                       : std::string(),
      "</figure>\n");
}

std::string scales(const LensReport& report) {
  if (report.static_scale == 0) {
    return "";
  }
  std::string out =
      text("<p>Largest gradient ", report.largest_gradient,
           ": the static loss scale it bears is <b>", report.static_scale,
           "</b>, the largest power of two that keeps it below 65504.</p>\n<table><tr><th>static "
           "scale</th><th>flushed to 0</th><th>subnormal</th><th>overflow</th></tr>\n");
  const auto cell = [&report](double part) {
    return "<td>" + cell_number(100 * part / report.gradients) + "%</td>";
  };
  for (const LensScale& row : report.scales) {
    out += text("<tr><td>", row.scale, "</td><td>", flushed_text(report, row), "</td>") +
           cell(row.subnormal) + cell(row.overflow) + "</tr>\n";
  }
  const std::string note = rounding_note(report);
  return out + "</table>\n" + (note.empty() ? "" : "<p>" + escaped(note) + "</p>\n");
}

}  // namespace

std::string lens_section(const LensReport& report, size_t most_rows) {
  std::string out = text(
      "<p>", report.steps, " steps, ", report.first_step, " to ", report.last_step,
      ". A row is a tensor, a column an exponent e: magnitudes from 2<sup>e</sup> to "
      "2<sup>e+1</sup>; what lies farther left is in the first column. A stronger colour is a "
      "larger share "
      "of the tensor. f16 flushes to 0 left of 2<sup>-25</sup>, is subnormal up to "
      "2<sup>-14</sup> and overflows from 2<sup>16</sup>: the red lines. Gradients are at their "
      "true value.</p>\n",
      legend());
  std::vector<std::string> kinds;
  for (const LensRow& row : report.rows) {
    if (std::find(kinds.begin(), kinds.end(), row.kind) == kinds.end()) {
      kinds.push_back(row.kind);
      out += figure(report, row.kind, most_rows);
    }
  }
  return out + scales(report);
}

std::string to_html(const LensReport& report) {
  const NamedLens run{.name = "", .report = report};
  return page::head("Exponent lens", true) + "<h1>Exponent lens</h1>\n" + lens_over_time({&run}) +
         "<h2>All steps</h2>\n" + lens_section(report, report.rows.size()) + page::foot();
}

std::string to_html(const std::vector<NamedLens>& runs) {
  check(!runs.empty(), "lens: got no run for a page");
  std::vector<const NamedLens*> all;
  std::string sections;
  for (const NamedLens& run : runs) {
    all.push_back(&run);
    sections += "<h2>" + escaped(run.name) + ", all steps</h2>\n" +
                lens_section(run.report, run.report.rows.size());
  }
  return page::head("Exponent lens", true) + "<h1>Exponent lens</h1>\n" + lens_over_time(all) +
         sections + page::foot();
}

}  // namespace binade::train
