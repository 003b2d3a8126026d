// Plots as SVG text. Colours are those of the page's style sheet (classes c0, c1, ...), so that a
// plot follows light and dark mode; each series has a dash pattern of its own besides.
#pragma once
#include <string>
#include <vector>

namespace binade::train::page {

struct Axis {
  enum Scale { linear, log2, log10 };
  std::string label = {};  // with the unit
  Scale scale = linear;
  std::vector<std::string> categories = {};  // names for x = 0, 1, ...; the scale is linear
};

struct Series {
  enum Kind { line, points, steps };  // steps: a histogram whose bins are centred on x
  std::string name;
  std::vector<double> x, y;
  Kind kind = line;
  std::vector<double> error = {};  // half lengths of error bars, of points
};

// A vertical line.
struct Mark {
  double x;
  std::string label;
};

struct Plot {
  std::string title = {}, caption = {};
  Axis x = {}, y = {};
  std::vector<Series> series = {};
  std::vector<Mark> marks = {};
  double width = 620, height = 320;  // of the view box: text is 14 units high
};

inline constexpr size_t kColors = 6;
// The classes of a series by its place in the plot: from the seventh on colours come again, with
// thinner lines ("c0 thin").
std::string color_class(size_t series);

// `readout`: the SVG takes the keyboard and carries what the script of page.h needs.
std::string to_svg(const Plot& plot, bool readout = false);
// Swatches with names, as HTML.
std::string legend_of(const Plot& plot);
std::string escaped(const std::string& text);  // for HTML and SVG
std::string html(const std::string& text);     // escaped, with raised exponents: "2^-24"

}  // namespace binade::train::page
