#include <bench/case_check.h>
#include <binade/core/device/device_memory.h>
#include <binade/kernels/base/kernel.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/user/user_kernels_internal.h>

namespace binade::bench {
namespace {

bool draws(const std::string& kernel) {
  for (const char* word : {"dropout", "normal", "uniform", "bernoulli", "random"}) {
    if (kernel.find(word) != std::string::npos) {
      return true;
    }
  }
  return false;
}

// Copies the values of an array to the reference's array, which may have another dtype.
void copy_values(const View& from, const View& to) {
  if (from.numel == 0) {
    return;
  }
  const kernels::Workspace host(static_cast<size_t>(from.numel) * size_of(from.dtype));
  device_copy(host.as<void>(), Device{}, from.data, from.device,
              static_cast<size_t>(from.numel) * size_of(from.dtype));
  kernels::copy({.x = view_of(host.as<void>(), from.dtype, from.sizes), .y = to});
}

std::string first_wrong(const View& got, const View& expected, size_t array, DType dtype) {
#ifdef BINADE_WITH_CUDA
  const kernels::KernelCall call("bench", got);
#endif
  // A case in f32 may store a result in f64; its values still have the precision of f32.
  const DType precision = got.dtype == DType::f64 && dtype != DType::f64 ? DType::f32 : got.dtype;
  const kernels::UserDifference d = kernels::compare_with_own(got, expected, precision);
  return d.found ? text("element ", d.index, " of array ", array, " (", got.dtype, " ", got.sizes,
                        ") is ", d.got, ", expected ", d.expected, "; ", d.count, " of ", got.numel,
                        " elements differ")
                 : "";
}

}  // namespace

CaseCheck check_case(const Prepared& work, const CaseSettings& settings) {
  CaseSettings own = settings;
  own.device = Device{};
  own.provider = "";
  own.dtype = draws(settings.kernel) ? settings.dtype : DType::f64;
  Prepared reference = prepare(own);
  if (reference.operands->arrays().size() != work.operands->arrays().size()) {
    own.dtype = settings.dtype;  // an optimizer step with f16 weights and f32 masters
    reference = prepare(own);
  }
  CaseCheck result{.against = text(own.dtype, " on the CPU")};
  const auto &tested = work.operands->arrays(), &expected = reference.operands->arrays();
  check(tested.size() == expected.size(), settings.kernel, ": got ", tested.size(), " arrays, and ",
        expected.size(), " in ", own.dtype);
  synchronize(settings.device);
  for (size_t i = 0; i < tested.size(); ++i) {
    copy_values(*tested[i], *expected[i]);
  }
  {
    const kernels::OwnKernels guard;
    reference.run();
  }
  work.run();
  synchronize(settings.device);
  for (size_t i = 0; i < tested.size() && result.ok; ++i) {
    result.wrong = first_wrong(*tested[i], *expected[i], i, settings.dtype);
    result.ok = result.wrong.empty();
  }
  return result;
}

}  // namespace binade::bench
