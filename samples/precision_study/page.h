// A whole run as one self-contained HTML page and as JSON.
#pragma once
#include "experiment.h"

namespace study {

struct Outcome {
  const Experiment* experiment;
  Report report;
  std::string error;  // what it threw, if anything
  double cpu_seconds = 0, seconds = 0;
  bool holds() const { return error.empty() && report.holds(); }
};

struct Study {
  std::vector<Outcome> outcomes;
  std::string pictures, text;  // the data's sources
  std::string device;
  std::string broken;  // the experiment whose mechanism was off, if any
};

std::string to_html(const Study& study);
std::string to_json(const Study& study);

}  // namespace study
