#include <binade/core/ops.h>
#include <binade/train/metrics/class_tensors_internal.h>

namespace binade::train {

ClassMetric::ClassMetric(const char* default_name, const ClassMetricOptions& options)
    : TargetMetric(options.name.empty() ? default_name : options.name,
                   {options.output, options.target, options.mask}),
      options_(options) {
  check(options.classes >= 0, name(), ": got classes ", options.classes,
        ", expected no negative number");
}

void ClassMetric::add_batch(const Tensor& output, const Tensor& target, const Tensor& mask) {
  const ClassTensors tensors = class_tensors(name(), options_, output, target, mask);
  add_classes(tensors);
  bad_.add(cat({number_of(tensors.nan), number_of(tensors.bad)}));
}

bool ClassMetric::has_nan() const {
  check(bad_.value(1) == 0, out_of_range(name(), bad_.value(1)));
  return bad_.value(0) > 0;
}

}  // namespace binade::train
