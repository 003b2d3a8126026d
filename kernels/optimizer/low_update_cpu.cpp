#include <binade/kernels/base/element.h>
#include <binade/kernels/optimizer/low_update_internal.h>
#include <binade/kernels/optimizer/optimizer_internal.h>

namespace binade::kernels {
namespace {

// Calls f with a value of the range's type; LowBlock supports only f16 and bf16.
template <class F>
void for_low_type(DType dtype, F&& f) {
  if (dtype == DType::f16) {
    f(half{});
  } else {
    f(bfloat16{});
  }
}

}  // namespace

void check_low(const char* op, const View& param, const View& master, const LowUpdate& low) {
  if (low.how == LowUpdates::nearest) {
    return;
  }
  check(is_half(param.dtype) && !master, op, ": got ", param.dtype, master ? " with a master" : "",
        " for stochastic or compensated updates, expected f16 or bf16 without a master");
  if (low.how == LowUpdates::compensated) {
    check_flat(op, "compensation", low.compensation, param, param.dtype);
  }
}

LowBlock::LowBlock(const LowUpdate& low, StepRange& range, int64_t at)
    : low_(low), range_(range), at_(at) {
  for_low_type(range.dtype, [&]<class T>(T) {
    const T* param = static_cast<const T*>(range.param);
    const T* rest = low.how == LowUpdates::compensated ? low.compensation.as<T>() + at : nullptr;
    for (int64_t i = 0; i < range.count; ++i) {
      values_[i] = static_cast<float>(param[i]) + (rest ? static_cast<float>(rest[i]) : 0.0f);
    }
  });
  range.master = values_;
}

void LowBlock::store(const RangeScalars& w, bool on_device) {
  const auto update =
      static_cast<uint64_t>(on_device ? static_cast<int64_t>(w.update) : low_.update);
  for_low_type(range_.dtype, [&]<class T>(T) {
    T* param = static_cast<T*>(range_.param);
    for (int64_t i = 0; i < range_.count; ++i) {
      if (low_.how == LowUpdates::stochastic) {
        param[i] = stochastic_value<T>(values_[i], low_.seed, low_.first + at_ + i, update);
      } else {
        param[i] = static_cast<T>(values_[i]);
        low_.compensation.as<T>()[at_ + i] =
            static_cast<T>(values_[i] - static_cast<float>(param[i]));
      }
    }
  });
}

}  // namespace binade::kernels
