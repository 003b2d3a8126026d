// ModuleReport: the texts of describe() and explain_precision(). Internal to nn.
#pragma once
#include <binade/nn/module.h>

namespace binade::nn {

class ModuleReport {
 public:
  explicit ModuleReport(const Module& module) : module_(module) {}
  std::string describe() const;           // as in Module
  std::string explain_precision() const;  // as in Module

 private:
  const Module& module_;
};

}  // namespace binade::nn
