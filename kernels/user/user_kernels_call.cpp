// Calls a user's function, and compares its result with ours.
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/printable.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/user/user_object_internal.h>
#ifdef BINADE_WITH_CUDA
#include <binade/kernels/cuda/user_call.h>
#endif

#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace binade::kernels {
namespace {

// Our results, in memory of their own.
class OwnResults {
 public:
  explicit OwnResults(const UserCall& call) {
    for (const View* output : call.outputs) {
      View view = *output;
      if (view) {
        memory_.push_back(std::make_unique<Workspace>(
            static_cast<size_t>(view.numel) * size_of(view.dtype), view.device));
        view = view_of(memory_.back()->as<void>(), view.dtype, view.sizes);
        view.device = output->device;
      }
      views_.push_back(view);
    }
    const OwnKernels guard;
    call.own(views_);
  }
  const View& operator[](size_t i) const { return views_[i]; }

 private:
  std::vector<std::unique_ptr<Workspace>> memory_;
  std::vector<View> views_;
};

void compare_results(const UserCall& call, const UserObject& object, const OwnResults& ours) {
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const View& got = *call.outputs[i];
    const UserDifference d = got ? compare_with_own(got, ours[i], got.dtype) : UserDifference{};
    check(!d.found, user_symbol(call.function), " of ", printable(object.path),
          " is wrong: element ", d.index, " of its result ", i + 1, " (", got.dtype, " ", got.sizes,
          ") is ", d.got, ", Binade's kernel has ", d.expected, "; ", d.count, " of ", got.numel,
          " elements differ; correct it, or set BINADE_KERNEL_CHECK=0 to use it as it is");
  }
}

// Calls the user's function and returns its status. An exception, which the interface forbids,
// becomes an Error.
int status_of_user(const UserCall& call, UserFunctionPointer function, const void* arguments,
                   const binade_launch& launch, const std::string& path) {
  std::string thrown;
  try {
    return function(arguments, &launch);
  } catch (const std::exception& error) {
    thrown = text(": ", printable(error.what()));
  } catch (...) {
    thrown = " that is no std::exception";
  }
  fail(user_symbol(call.function), " of ", printable(path), ": threw an exception", thrown,
       "; expected a returned number, 0 (done) or 1 (declined)");
}

bool start_user(const UserCall& call, UserObject& object, const void* arguments) {
  const int index = static_cast<int>(call.function);
  binade_launch launch{user_device_bit(call.decisive.device), call.decisive.device.index, nullptr,
                       threads()};
#ifdef BINADE_WITH_CUDA
  if (!call.decisive.device.is_cpu()) {
    launch.stream = user_call_stream();
    if (launch.device == BINADE_ON_EMULATED && !user_call_captured()) {
      wait_for_user_stream();  // the function may touch the memory on the host
    }
  }
#endif
  const int status = status_of_user(call, object.functions[index], arguments, launch, object.path);
  if (status == BINADE_DECLINED) {
    note_user_once(text(user_symbol(call.function), " of ", printable(object.path), " declined ",
                        call.decisive.dtype, " ", call.decisive.sizes, " on ", call.decisive.device,
                        ": Binade's kernel runs there"));
    return false;
  }
  check(status == BINADE_DONE, user_symbol(call.function), " of ", printable(object.path),
        ": returned ", status, " for ", call.decisive.dtype, " ", call.decisive.sizes, " on ",
        call.decisive.device, ", expected 0 (done) or 1 (declined)");
  object.calls.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool call_user(const UserCall& call, UserObject& object, const void* arguments) {
  std::atomic<int64_t>& compared =
      object.compared[static_cast<int>(call.function)][static_cast<int>(call.decisive.dtype)];
  bool compare = compared.load(std::memory_order_relaxed) < object.checks;
#ifdef BINADE_WITH_CUDA
  compare = compare && (call.decisive.device.is_cpu() || !user_call_captured());
#endif
  if (!compare) {
    return start_user(call, object, arguments);
  }
  const OwnResults ours(call);  // first: the user's results may overwrite the inputs
  if (!start_user(call, object, arguments)) {
    return false;
  }
  compare_results(call, object, ours);
  compared.fetch_add(1, std::memory_order_relaxed);
  return true;
}

}  // namespace

binade_tensor user_tensor(const View& view) {
  binade_tensor tensor{};
  if (view) {
    tensor.data = view.data;
    tensor.dtype = static_cast<int32_t>(view.dtype);
    tensor.rank = view.dim();
    for (int d = 0; d < view.dim(); ++d) {
      tensor.size[d] = view.sizes[d];
      tensor.stride[d] = view.strides[d];
    }
  }
  return tensor;
}

binade_tensor user_tensor(const View& view, const Dims& sizes) {
  return view ? user_tensor(view_of(view.data, view.dtype, sizes)) : binade_tensor{};
}

bool run_user_function(const UserCall& call, const void* arguments) {
  UserObject* object = user_object_of(call.function);
  if (!object) {
    return false;
  }
  if (call.refused) {
    note_user_once(text(user_symbol(call.function), " of ", printable(object->path),
                        " is not asked for ", call.refused, ": Binade's kernel runs there"));
    return false;
  }
  for (const View* output : call.outputs) {
    if (output->numel == 0 && output->defined() && output->dim() > 0) {
      return false;  // nothing to compute, or a reduction of nothing
    }
  }
  if (call.decisive.numel == 0) {
    return false;
  }
#ifdef BINADE_WITH_CUDA
  if (!call.decisive.device.is_cpu()) {
    const KernelCall current(user_symbol(call.function), call.decisive);
    return call_user(call, *object, arguments);
  }
#endif
  return call_user(call, *object, arguments);
}

}  // namespace binade::kernels
