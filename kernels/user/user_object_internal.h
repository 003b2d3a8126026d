// A loaded object of a user, for the code that loads it and the code that calls it.
#pragma once
#include <binade/kernels/user/user_kernels_internal.h>

#include <atomic>
#include <string>

namespace binade::kernels {

using UserFunctionPointer = int (*)(const void* arguments, const binade_launch* launch);

inline constexpr int64_t kDefaultUserChecks = 2;

// A shared object as the provider of one kernel.
struct UserObject {
  std::string path;
  int32_t devices = 0;
  int64_t checks = kDefaultUserChecks;
  UserFunctionPointer functions[kUserFunctions] = {};
  std::atomic<int64_t> compared[kUserFunctions][kDTypeCount] = {};
  std::atomic<int64_t> calls = 0;
};

UserObject* user_object_of(UserFunction function);  // null: ours runs
const char* user_symbol(UserFunction function);     // "binade_softmax_forward"
int32_t user_device_bit(Device device);             // a binade_device

// Notes one line, unless it is one of the last plan_limit() lines (kernels/base/provider.h); some
// name a shape.
void note_user_once(const std::string& note);

}  // namespace binade::kernels
