// HTML pages that need no other file: the frame, the style sheet, tables and figures. The report of
// a run, the exponent lens and the samples' studies share it.
//
// A page is readable on a phone and in light and dark mode. It asks for nothing outside of the
// file; one with a script has a content security policy that says so. All texts of tables and
// figures are escaped here.
#pragma once
#include <binade/train/report/plot.h>

#include <string>
#include <vector>

namespace binade::train::page {

// Up to <body>, which it opens. `readout`: with the script that shows the values of plots
// (figure_of()) at the pointer, and under the arrow keys.
std::string head(const std::string& title, bool readout = false);
std::string foot();

// A row of <th> or <td>; the texts are HTML.
std::string cells(const char* tag, const std::vector<std::string>& texts);

struct TableText {
  std::string caption = {};
  std::vector<std::string> head = {};
  std::vector<std::vector<std::string>> rows = {};
};
// Plain texts, which are escaped; "2^-24" gets a raised exponent.
std::string table_of(const TableText& table);

// The plot with its title, legend and caption.
std::string figure_of(const Plot& plot);
// The same with its values as JSON for the script of head().
std::string figure_with_readout(const Plot& plot);

// JSON as the content of a <script>, which a "<" could end.
std::string in_script(std::string json);

std::string short_number(double value);    // up to four digits: "0.01234", "1.2e-05", "nan"
std::string seconds_text(double seconds);  // "3.2 s", "4 min 10 s", "2 h 5 min"

}  // namespace binade::train::page
