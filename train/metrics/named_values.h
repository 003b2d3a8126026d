// Numbers by name, in the order in which they are shown. Metrics give them and loggers write them.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace binade::train {

using NamedValues = std::vector<std::pair<std::string, double>>;

}  // namespace binade::train
