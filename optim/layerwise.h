// LayerwiseOptimizer: what LAMB and LARS share. Their steps depend on the norms of each parameter,
// so they tell the kernels where the parameters lie: tables beside the parameters, made once.
#pragma once
#include <binade/kernels/optimizer/optimizer_trust.h>
#include <binade/optim/optimizer.h>

namespace binade::optim {

class LayerwiseOptimizer : public Optimizer {
 public:
  // The ratio by which the last applied step of each parameter multiplied the learning rate, 1
  // before the first, by parameter name. Waits for a device.
  NamedScalars trust_ratios() const;

 protected:
  LayerwiseOptimizer(std::vector<ParamGroup> groups, const Settings& settings,
                     std::vector<std::string> moment_names);
  kernels::TrustTable table_of(const Range& range) const;

 private:
  struct Tables {  // of a group
    Tensor chunks, items, ratios;
    std::vector<int64_t> first_chunk;  // of each item, and the number of all
    std::vector<int64_t> origin;       // of each item
    std::vector<std::string> names;    // of each item
  };
  Tables make_tables(size_t group) const;
  std::vector<Tables> tables_;
};

}  // namespace binade::optim
