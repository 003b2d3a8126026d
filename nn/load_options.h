// The options of Module::load_state(), and its report.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace binade::nn {

struct LoadOptions {
  // Paths of the model that keep their values, with everything below them. * stands for any
  // characters within one name, ** for any number of names: {"fc"}, {"fc.*", "**.bias"}. Entries
  // of the state with these names are not used. A pattern that matches nothing is an error.
  std::vector<std::string> skip = {};
  // Other names in the state: {from, to} renames an entry `from` and all below it to the model's
  // path `to`; "" is the root. {{"module", ""}} removes a first name. The first pair that matches
  // counts; a pair that matches nothing is an error. Renaming comes before skipping.
  std::vector<std::pair<std::string, std::string>> rename = {};
  // If false, names that only the model has or only the state has are reported and are no error.
  bool strict = true;
};

struct LoadReport {
  std::vector<std::string> loaded;      // names of the model that took a value
  std::vector<std::string> missing;     // names of the model that kept their values
  std::vector<std::string> unexpected;  // names of the state that were not used
};

}  // namespace binade::nn
