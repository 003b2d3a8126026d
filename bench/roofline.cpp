// The roofline of Williams, Waterman and Patterson (2009): FLOP/s over FLOPs per byte on
// logarithmic axes. Cases without FLOPs (copies, sorts) appear at the left edge by their bytes.
#include <bench/bench_record.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace binade::bench {
namespace {

constexpr double kWidth = 860, kHeight = 520, kLeft = 80, kRight = 20, kTop = 40, kBottom = 60;

struct RooflinePoint {
  std::string name;
  double intensity, rate;
};

struct RooflineAxes {
  double low_x, high_x, low_y, high_y;  // powers of ten
  double x(double intensity) const {
    return kLeft + (std::log10(intensity) - low_x) / (high_x - low_x) * (kWidth - kLeft - kRight);
  }
  double y(double rate) const {
    return kHeight - kBottom -
           (std::log10(rate) - low_y) / (high_y - low_y) * (kHeight - kTop - kBottom);
  }
};

template <class... Numbers>
std::string drawn(const char* format, Numbers... numbers) {
  char shown[512];
  std::snprintf(shown, sizeof shown, format, numbers...);
  return shown;
}

std::string escaped(const std::string& name) {
  std::string out;
  for (const char c : name) {
    out += c == '<'   ? "&lt;"
           : c == '>' ? "&gt;"
           : c == '&' ? "&amp;"
           : c == '"' ? "&quot;"
                      : std::string(1, c);
  }
  return out;
}

RooflineAxes axes_of(const std::vector<RooflinePoint>& points, double copy, double peak) {
  double low_x = 0.1, high_x = 10, low_y = copy * 0.01, high_y = std::max(peak, copy) * 1.5;
  for (const RooflinePoint& point : points) {
    low_x = std::min(low_x, point.intensity / 2), high_x = std::max(high_x, point.intensity * 2);
    low_y = std::min(low_y, point.rate / 2), high_y = std::max(high_y, point.rate * 2);
  }
  return {std::floor(std::log10(low_x)), std::ceil(std::log10(high_x)),
          std::floor(std::log10(low_y)), std::ceil(std::log10(high_y))};
}

std::string grid_of(const RooflineAxes& axes) {
  std::string svg;
  for (double power = axes.low_x; power <= axes.high_x; ++power) {
    const double x = axes.x(std::pow(10, power));
    svg += drawn("<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='#ddd'/>\n", x, kTop, x,
                 kHeight - kBottom);
    svg += drawn("<text x='%.1f' y='%.1f' text-anchor='middle'>%g</text>\n", x,
                 kHeight - kBottom + 18, std::pow(10, power));
  }
  for (double power = axes.low_y; power <= axes.high_y; ++power) {
    const double y = axes.y(std::pow(10, power));
    svg += drawn("<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='#ddd'/>\n", kLeft, y,
                 kWidth - kRight, y);
    svg += drawn("<text x='%.1f' y='%.1f' text-anchor='end'>%g</text>\n", kLeft - 6, y + 4,
                 std::pow(10, power - 9));
  }
  return svg + drawn(
                   "<text x='%.1f' y='%.1f' text-anchor='middle'>FLOPs per byte</text>\n"
                   "<text transform='translate(18 %.1f) rotate(-90)' text-anchor='middle'>"
                   "GFLOP/s</text>\n",
                   (kLeft + kWidth - kRight) / 2, kHeight - 16, kHeight / 2);
}

std::string roofs_of(const RooflineAxes& axes, double copy, double peak) {
  const double left = std::pow(10, axes.low_x), right = std::pow(10, axes.high_x);
  const double ridge = peak > 0 ? std::clamp(peak / copy, left, right) : right;
  std::string svg = drawn(
      "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='#06c' stroke-width='2'><title>copy: "
      "%.1f GB/s</title></line>\n",
      axes.x(left), axes.y(left * copy), axes.x(ridge), axes.y(ridge * copy), copy * 1e-9);
  svg += drawn("<text x='%.1f' y='%.1f' fill='#06c'>copy %.1f GB/s</text>\n", axes.x(left) + 8,
               axes.y(left * copy) - 24, copy * 1e-9);
  if (peak > 0) {
    svg += drawn(
        "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='#c60' stroke-width='2'/>\n"
        "<text x='%.1f' y='%.1f' text-anchor='end' fill='#c60'>%.1f GFLOP/s</text>\n",
        axes.x(ridge), axes.y(peak), axes.x(right), axes.y(peak), axes.x(right), axes.y(peak) - 6,
        peak * 1e-9);
  }
  return svg;
}

}  // namespace

std::string roofline_svg(const BenchRecord& record) {
  std::vector<RooflinePoint> points;
  double copy = 1e9, peak = 0;
  for (const CaseRecord& one : record.cases) {
    if (one.error.empty() && !one.samples.empty()) {
      const double seconds = median(one.samples);
      copy = std::max(copy, one.copy_rate);
      peak = std::max(peak, one.flop_rate);
      const double flops = one.flops > 0 ? one.flops : one.bytes * 0.1;
      points.push_back({line_of(one), flops / one.bytes, flops / seconds});
    }
  }
  const RooflineAxes axes = axes_of(points, copy, peak);
  std::string svg = drawn(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %g %g' font-family='sans-serif' "
      "font-size='12'>\n<rect width='%g' height='%g' fill='#fff'/>\n",
      kWidth, kHeight, kWidth, kHeight);
  svg += "<text x='80' y='24' font-size='14'>" +
         escaped(text(record.machine.device, ", ", record.machine.threads, " threads, ",
                      record.machine.isa, "; ", record.machine.commit, ", ", record.machine.date)) +
         "</text>\n";
  svg += grid_of(axes) + roofs_of(axes, copy, peak);
  for (const RooflinePoint& point : points) {
    const std::string shown = point.name.substr(0, point.name.find(':'));
    svg += drawn("<circle cx='%.1f' cy='%.1f' r='4' fill='#333'>", axes.x(point.intensity),
                 axes.y(point.rate)) +
           "<title>" + escaped(point.name) + "</title></circle>\n" +
           drawn("<text x='%.1f' y='%.1f'>", axes.x(point.intensity) + 7, axes.y(point.rate) + 4) +
           escaped(shown) + "</text>\n";
  }
  return svg +
         "<text x='80' y='508' fill='#777'>Cases without FLOPs stand at 0.1 FLOPs per byte, by "
         "their bytes.</text>\n</svg>\n";
}

}  // namespace binade::bench
