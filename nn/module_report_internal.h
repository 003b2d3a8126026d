// ModuleReport: the texts of describe() and explain_precision(), and the simulated formats of a
// model. Internal to nn.
#pragma once
#include <binade/nn/module.h>

#include <memory>
#include <string>
#include <vector>

namespace binade {
class SimulatedFormats;
}

namespace binade::nn {

class ModuleReport {
 public:
  explicit ModuleReport(const Module& module) : module_(module) {}
  std::string describe() const;           // as in Module
  std::string explain_precision() const;  // as in Module
  // The simulated formats of this module and those below that have delayed scales, each once.
  std::vector<std::shared_ptr<const SimulatedFormats>> delayed_formats() const;

 private:
  const Module& module_;
};

}  // namespace binade::nn
