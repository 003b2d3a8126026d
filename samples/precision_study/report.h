// The result of an experiment: checks with their bounds, tables, plots and remarks.
#pragma once
#include <binade/train/report/plot.h>

#include <string>
#include <vector>

namespace study {

using binade::train::page::Axis;
using binade::train::page::html;
using binade::train::page::Plot;
using binade::train::page::Series;

// A number that must be in [low, high]; NaN fails the check.
struct Check {
  std::string what;
  double value;
  double low, high;  // infinite where there is no such bound
  // True if it holds because of the mechanism that --break switches off: it must fail then.
  bool by_mechanism = false;
  bool holds() const { return value >= low && value <= high; }
  std::string bound() const;  // "<= 0.01"
};

struct Table {
  std::string caption;
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};

class Report {
 public:
  std::vector<Check> checks;
  std::vector<Table> tables;
  std::vector<Plot> plots;
  std::vector<std::string> remarks;

  Check& at_most(const std::string& what, double value, double bound);
  Check& at_least(const std::string& what, double value, double bound);
  // Checks that hold although their mechanism is switched off, as text; empty if there are none.
  std::string powerless() const;
  bool holds() const;  // all checks, of which there is at least one
};

std::string number(double value);  // three digits: "0.0123", "1.23e-05", "inf"
std::string fixed(double value, int digits);
std::string percent(double share);       // "12.3%"
std::string power_of_two(double value);  // "2^-14"
std::string bytes(double count);         // "1.18 MB"

}  // namespace study
