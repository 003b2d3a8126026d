// ModuleReport: the texts of describe() and explain_precision(). Internal to nn.
#pragma once
#include <binade/nn/module.h>

namespace binade::nn {

class ModuleReport {
 public:
  explicit ModuleReport(const Module& module) : module_(module) {}
  std::string describe() const;           // as Module's
  std::string explain_precision() const;  // as Module's

 private:
  const Module& module_;
};

}  // namespace binade::nn
