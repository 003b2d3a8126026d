#include <binade/kernels/base/error.h>
#include <binade/train/report/plot.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace binade::train::page {
namespace {

constexpr double kLeft = 70, kRight = 28, kTop = 22, kBottom = 56;

std::string number_text(const char* form, double value) {
  char text[48];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

// The escaped text, with the exponents of powers ("2^-24") between the two tags.
std::string with_powers(const std::string& text, const char* begin, const char* end) {
  const std::string plain = escaped(text);
  std::string out;
  for (size_t i = 0; i < plain.size(); ++i) {
    const size_t digits = plain.find_first_not_of("-0123456789", i + 1);
    const size_t after = digits == std::string::npos ? plain.size() : digits;
    if (plain[i] == '^' && after > i + 1) {
      out += begin + plain.substr(i + 1, after - i - 1) + end;
      i = after - 1;
    } else {
      out += plain[i];
    }
  }
  return out;
}
// Exponents are raised by coordinates: SVG has no markup for them that all browsers draw alike.
std::string svg_text(const std::string& text) {
  return with_powers(text, "<tspan dy=\"-4\" font-size=\"11\">", "</tspan>");
}

std::string px(double value) { return number_text("%.1f", value); }

// Maps values to [0, 1] and knows where the ticks are.
class Ruler {
 public:
  Ruler(const Axis& axis, double low, double high, double length)
      : axis_(axis), most_ticks_(length / 75) {
    low_ = scaled(low);
    high_ = scaled(high);
    if (!axis.categories.empty()) {
      low_ = -0.5;
      high_ = static_cast<double>(axis.categories.size()) - 0.5;
    } else if (const double largest = std::max(std::abs(low_), std::abs(high_));
               high_ - low_ < 1e-12 * std::max(largest, 1.0)) {
      // Wide enough that neighbouring ticks are different numbers.
      const double more = std::max(0.5, 1e-9 * largest);
      low_ -= more;
      high_ += more;
    }
  }
  double operator()(double value) const { return (scaled(value) - low_) / (high_ - low_); }
  double least() const { return unscaled(low_); }
  double most() const { return unscaled(high_); }
  bool shows(double value) const {
    return std::isfinite(value) && (axis_.scale == Axis::linear || value > 0);
  }

  struct Tick {
    double at;  // in [0, 1]
    std::string label;
  };
  std::vector<Tick> ticks() const {
    std::vector<Tick> all;
    if (!axis_.categories.empty()) {
      for (size_t i = 0; i < axis_.categories.size(); ++i) {
        all.push_back({position(static_cast<double>(i)), axis_.categories[i]});
      }
      return all;
    }
    const double step = nice_step();
    const double first = std::ceil(low_ / step - 1e-9);
    constexpr int kMost = 100;
    for (int i = 0; i < kMost; ++i) {
      const double v = (first + i) * step;
      if (v > high_ + step * 1e-9) {
        break;
      }
      all.push_back({position(v), label(std::abs(v) < step * 1e-9 ? 0 : v)});
    }
    return all;
  }

 private:
  double scaled(double v) const {
    constexpr double kMost = 8e307;  // so that a difference of two is finite
    return axis_.scale == Axis::linear ? std::clamp(v, -kMost, kMost)
           : axis_.scale == Axis::log2 ? std::log2(v)
                                       : std::log10(v);
  }
  double unscaled(double v) const {
    return axis_.scale == Axis::linear ? v
           : axis_.scale == Axis::log2 ? std::exp2(v)
                                       : std::pow(10, v);
  }
  double position(double v) const { return (v - low_) / (high_ - low_); }
  double nice_step() const {
    const double wanted = (high_ - low_) / std::max(most_ticks_, 2.0);
    const double power = std::pow(10, std::floor(std::log10(wanted)));
    double step = wanted > 5 * power   ? 10 * power
                  : wanted > 2 * power ? 5 * power
                  : wanted > power     ? 2 * power
                                       : power;
    return axis_.scale == Axis::linear ? step : std::max(1.0, std::round(step));
  }
  std::string label(double v) const {
    if (axis_.scale == Axis::linear) {
      return number_text("%g", v);
    }
    return svg_text((axis_.scale == Axis::log2 ? "2^" : "10^") + number_text("%g", v));
  }

  const Axis& axis_;
  double most_ticks_;
  double low_, high_;
};

double half_bin(const Series& s) {  // of a histogram
  return s.kind == Series::steps && s.x.size() > 1 ? (s.x[1] - s.x[0]) / 2 : 0;
}

struct Bounds {
  double low = INFINITY, high = -INFINITY;
  void take(double v, Axis::Scale scale) {
    if (std::isfinite(v) && (scale == Axis::linear || v > 0)) {
      low = std::min(low, v);
      high = std::max(high, v);
    }
  }
};

class Canvas {
 public:
  Canvas(const Plot& plot, const Bounds& x, const Bounds& y)
      : plot_(plot),
        right_(plot.width - kRight),
        bottom_(plot.height - kBottom),
        x_(plot.x, x.low, x.high, right_ - kLeft),
        y_(plot.y, y.low, y.high, 2 * (bottom_ - kTop)) {}

  std::string draw(bool readout) {
    svg_ = "<svg viewBox=\"0 0 " + px(plot_.width) + ' ' + px(plot_.height) +
           "\" role=\"img\" aria-label=\"" + escaped(plot_.title) + '"' +
           (readout ? readout_attributes() : "") + ">\n";
    axes();
    for (const Mark& mark : plot_.marks) {
      const double x = at_x(mark.x);
      line("mark", x, kTop, x, bottom_);
      text(x + 4, kTop + 10, "start", svg_text(mark.label));
    }
    for (size_t i = 0; i < plot_.series.size(); ++i) {
      series(plot_.series[i], i);
    }
    if (readout) {  // off the picture until the script moves it
      line("cursor", -9, kTop, -9, bottom_);
    }
    return svg_ + "</svg>\n";
  }

 private:
  // Where x is drawn: x in pixels and in values at both ends of the axis.
  std::string readout_attributes() const {
    return binade::text(" tabindex=\"0\" data-x=\"", kLeft, " ", right_, " ", x_.least(), " ",
                        x_.most(), "\" data-log=\"", plot_.x.scale == Axis::linear ? 0 : 1,
                        "\" data-name=\"", escaped(plot_.x.label), "\"");
  }
  double at_x(double v) const { return kLeft + x_(v) * (right_ - kLeft); }
  double at_y(double v) const { return bottom_ - y_(v) * (bottom_ - kTop); }

  void line(const std::string& css, double x1, double y1, double x2, double y2) {
    svg_ += "<line class=\"" + css + "\" x1=\"" + px(x1) + "\" y1=\"" + px(y1) + "\" x2=\"" +
            px(x2) + "\" y2=\"" + px(y2) + "\"/>\n";
  }
  void text(double x, double y, const char* anchor, const std::string& body,
            const std::string& more = "") {
    svg_ += "<text x=\"" + px(x) + "\" y=\"" + px(y) + "\" text-anchor=\"" + anchor + "\"" + more +
            ">" + body + "</text>\n";
  }

  void axes() {
    for (const Ruler::Tick& tick : x_.ticks()) {
      const double x = kLeft + tick.at * (right_ - kLeft);
      line("grid", x, kTop, x, bottom_);
      text(x, bottom_ + 20, "middle", tick.label);
    }
    for (const Ruler::Tick& tick : y_.ticks()) {
      const double y = bottom_ - tick.at * (bottom_ - kTop);
      line("grid", kLeft, y, right_, y);
      text(kLeft - 6, y + 4, "end", tick.label);
    }
    line("axis", kLeft, bottom_, right_, bottom_);
    line("axis", kLeft, kTop, kLeft, bottom_);
    text((kLeft + right_) / 2, plot_.height - 8, "middle", escaped(plot_.x.label));
    const double middle = (kTop + bottom_) / 2;
    text(14, middle, "middle", escaped(plot_.y.label),
         " transform=\"rotate(-90 14 " + px(middle) + ")\"");
  }

  void series(const Series& s, size_t index) {
    const std::string css = color_class(index);
    if (s.kind == Series::points) {
      points(s, css);
      return;
    }
    std::string path;
    bool pen_down = false;
    const double half = half_bin(s);
    for (size_t i = 0; i < s.x.size(); ++i) {
      if (!x_.shows(s.x[i]) || !y_.shows(s.y[i])) {
        pen_down = false;
        continue;
      }
      path += pen_down ? 'L' : 'M';
      path += px(at_x(s.x[i] - half)) + ' ' + px(at_y(s.y[i]));
      if (half > 0) {
        path += 'L' + px(at_x(s.x[i] + half)) + ' ' + px(at_y(s.y[i]));
      }
      pen_down = true;
    }
    svg_ += "<path class=\"" + css + "\" d=\"" + path + "\"/>\n";
    if (s.kind == Series::line && s.x.size() <= 24) {
      points(s, css);
    }
  }

  void points(const Series& s, const std::string& css) {
    for (size_t i = 0; i < s.x.size(); ++i) {
      if (!x_.shows(s.x[i]) || !y_.shows(s.y[i])) {
        continue;
      }
      const double x = at_x(s.x[i]);
      svg_ += "<circle class=\"" + css + "\" cx=\"" + px(x) + "\" cy=\"" + px(at_y(s.y[i])) +
              "\" r=\"3\"/>\n";
      if (!s.error.empty()) {
        const double low = at_y(s.y[i] - s.error[i]), high = at_y(s.y[i] + s.error[i]);
        line(css, x, low, x, high);
        line(css, x - 5, low, x + 5, low);
        line(css, x - 5, high, x + 5, high);
      }
    }
  }

  const Plot& plot_;
  double right_, bottom_;
  Ruler x_, y_;
  std::string svg_;
};

}  // namespace

std::string color_class(size_t series) {
  return "c" + std::to_string(series % kColors) + (series < kColors ? "" : " thin");
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string html(const std::string& text) { return with_powers(text, "<sup>", "</sup>"); }

std::string to_svg(const Plot& plot, bool readout) {
  Bounds x, y;
  for (const Series& s : plot.series) {
    for (size_t i = 0; i < s.x.size(); ++i) {
      const double half = half_bin(s);
      x.take(s.x[i] - half, plot.x.scale);
      x.take(s.x[i] + half, plot.x.scale);
      const double error = s.error.empty() ? 0 : s.error[i];
      y.take(s.y[i] - error, plot.y.scale);
      y.take(s.y[i] + error, plot.y.scale);
    }
  }
  for (const Mark& mark : plot.marks) {
    x.take(mark.x, plot.x.scale);
  }
  if (x.low > x.high || y.low > y.high) {
    return "<p>(nothing finite to plot)</p>\n";
  }
  if (plot.y.scale == Axis::linear) {  // some air
    const double air = 0.05 * (y.high - y.low);
    y.low = y.low >= 0 && y.low - air < 0 ? 0 : y.low - air;
    y.high += air;
  }
  return Canvas(plot, x, y).draw(readout);
}

std::string legend_of(const Plot& plot) {
  std::string legend = "<p class=\"legend\">";
  for (size_t i = 0; i < plot.series.size(); ++i) {
    const std::string css = color_class(i);
    legend += "<span><svg viewBox=\"0 0 28 10\" class=\"swatch\"><path class=\"" + css +
              "\" d=\"M1 5H27\"/></svg>" + html(plot.series[i].name) + "</span> ";
  }
  return legend + "</p>\n";
}

}  // namespace binade::train::page
