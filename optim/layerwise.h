// LayerwiseOptimizer: the base of LAMB and LARS. Their steps depend on the norm of each parameter,
// so the kernels need the position of each parameter: they get it from tables that are made once.
#pragma once
#include <binade/kernels/optimizer/optimizer_trust.h>
#include <binade/optim/optimizer.h>

namespace binade::optim {

class LayerwiseOptimizer : public Optimizer {
 public:
  // By parameter name: the ratio by which the last applied step multiplied the learning rate, 1
  // before the first step. Waits for the device.
  NamedScalars trust_ratios() const;

 protected:
  LayerwiseOptimizer(const std::vector<ParamGroup>& groups,
                     const std::vector<GroupSettings>& settings, bool has_momentum,
                     std::vector<std::string> moment_names);
  kernels::TrustTable table_of(const Range& range) const;

 private:
  struct Tables {  // of a group
    Tensor chunks, items, ratios;
    std::vector<int64_t> first_chunk;  // of each item, then the number of chunks
    std::vector<int64_t> origin;       // of each item
    std::vector<std::string> names;    // of each item
  };
  Tables make_tables(size_t group) const;
  std::vector<Tables> tables_;
};

}  // namespace binade::optim
