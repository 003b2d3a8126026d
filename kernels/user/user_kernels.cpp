// Loads users' kernels (user_kernels.h).
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/printable.h>
#include <binade/kernels/base/provider.h>
#include <binade/kernels/base/vendor_library.h>
#include <binade/kernels/cuda/recent_cache_internal.h>
#include <binade/kernels/user/user_kernels.h>
#include <binade/kernels/user/user_object_internal.h>
#include <dlfcn.h>

#include <charconv>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <variant>

namespace binade::kernels {

static_assert(BINADE_F64 == int(DType::f64) && BINADE_F32 == int(DType::f32) &&
              BINADE_F16 == int(DType::f16) && BINADE_BF16 == int(DType::bf16) &&
              BINADE_I64 == int(DType::i64) && kMaxDims == 8);

std::atomic<uint8_t> detail::user_kernel_state = kUserKernelsUnread;

namespace {

struct FunctionRow {
  const char *kernel, *symbol;
};
constexpr FunctionRow kFunctions[kUserFunctions] = {
    {"softmax", "binade_softmax_forward"},        {"softmax", "binade_softmax_backward"},
    {"reduce", "binade_reduce_forward"},          {"layer_norm", "binade_layer_norm_forward"},
    {"layer_norm", "binade_layer_norm_backward"}, {"rms_norm", "binade_rms_norm_forward"},
    {"rms_norm", "binade_rms_norm_backward"},     {"batch_norm", "binade_batch_norm_forward"},
    {"batch_norm", "binade_batch_norm_backward"}, {"group_norm", "binade_group_norm_forward"},
    {"group_norm", "binade_group_norm_backward"}, {"attention", "binade_attention_forward"},
    {"attention", "binade_attention_backward"},   {"gemm", "binade_gemm"},
    {"conv2d", "binade_conv2d_forward"},          {"conv2d", "binade_conv2d_backward_data"},
    {"conv2d", "binade_conv2d_backward_weight"},
};

// Objects are never unloaded: a call in another thread may still be using one.
struct UserKernels {
  std::mutex mutex;
  std::deque<UserObject> objects;
  std::atomic<UserObject*> of[kUserFunctions] = {};
  int64_t checks = kDefaultUserChecks;
  RecentCache<std::string, std::monostate> notes;
};
UserKernels& user_kernels() {
  static auto& instance = *new UserKernels;
  return instance;
}

thread_local bool only_own = false;

std::string known_names() {
  std::string names;
  for (const std::string_view name : user_kernel_names()) {
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return names;
}

void check_name(std::string_view kernel, const char* source) {
  for (const FunctionRow& row : kFunctions) {
    if (kernel == row.kernel) {
      return;
    }
  }
  fail(source, ": got the kernel \"", kernel, "\", expected one of ", known_names());
}

std::string dlerror_text() {
  const char* error = ::dlerror();
  return error ? printable(error) : "it cannot be loaded";
}

// The functions of a file; throws if there are none.
void load_object(UserObject& object, std::string_view kernel, const char* source) {
  const std::string shown = text(source, ": ", kernel, ": ", printable(object.path), ": ");
  // Without a slash dlopen would look in the system's folders.
  const std::string file =
      object.path.find('/') == std::string::npos ? "./" + object.path : object.path;
  void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  check(handle, shown, "not loaded (", handle ? "" : dlerror_text(),
        "); expected a shared object (kernels/base/user_kernel.h)");
  const auto* facts =
      static_cast<const binade_user_kernels*>(::dlsym(handle, "binade_user_kernels"));
  check(facts, shown,
        "it has no symbol binade_user_kernels; write BINADE_USER_KERNELS(devices) in ",
        "one of its sources (kernels/base/user_kernel.h)");
  check(facts->abi == BINADE_USER_KERNEL_ABI, shown, "got version ", facts->abi,
        " of user_kernel.h, expected ", BINADE_USER_KERNEL_ABI,
        "; compile it with the header of this Binade");
  constexpr int32_t kAll = BINADE_ON_CPU | BINADE_ON_CUDA | BINADE_ON_EMULATED;
  check(facts->devices > 0 && (facts->devices & ~kAll) == 0, shown, "got devices ", facts->devices,
        ", expected a sum of BINADE_ON_CPU, BINADE_ON_CUDA and BINADE_ON_EMULATED");
  object.devices = facts->devices;
  std::string wanted;
  bool found = false;
  for (int i = 0; i < kUserFunctions; ++i) {
    if (kernel == kFunctions[i].kernel) {
      object.functions[i] =
          reinterpret_cast<UserFunctionPointer>(::dlsym(handle, kFunctions[i].symbol));
      found = found || object.functions[i];
      wanted += text(wanted.empty() ? "" : " or ", kFunctions[i].symbol);
    }
  }
  check(found, shown, "it has no function ", wanted, "; export it with C linkage");
}

struct Loading {
  std::string_view kernel;
  std::string path;
  const char* source;
};

// REQUIRES: the mutex is held.
void load_locked(UserKernels& all, const Loading& wanted) {
  UserObject* object = nullptr;
  if (!wanted.path.empty()) {
    object = &all.objects.emplace_back();
    object->path = wanted.path;
    object->checks = all.checks;
    try {
      load_object(*object, wanted.kernel, wanted.source);
    } catch (...) {
      all.objects.pop_back();
      throw;
    }
  }
  for (int i = 0; i < kUserFunctions; ++i) {
    if (wanted.kernel == kFunctions[i].kernel) {
      all.of[i] = object;
    }
  }
}

std::vector<Loading> parse_list(std::string_view list) {
  constexpr const char* kSource = "BINADE_KERNEL";
  std::vector<Loading> wanted;
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), entry.size() + 1));
    const size_t colon = entry.find(':');
    check(colon != std::string_view::npos && colon + 1 < entry.size(), kSource, ": got \"",
          printable(entry),
          "\", expected KERNEL:FILE.so, with commas between several; KERNEL is one of ",
          known_names());
    check_name(entry.substr(0, colon), kSource);
    wanted.push_back({entry.substr(0, colon), std::string(entry.substr(colon + 1)), kSource});
  }
  return wanted;
}

int64_t checks_of_environment() {
  const char* value = std::getenv("BINADE_KERNEL_CHECK");
  if (!value) {
    return kDefaultUserChecks;
  }
  const std::string_view word = value;
  int64_t count = -1;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), count);
  check(error == std::errc() && end == word.data() + word.size() && count >= 0,
        "BINADE_KERNEL_CHECK: got \"", printable(word),
        "\", expected a number of calls, 0 for none");
  return count;
}

void set_state_locked(const UserKernels& all) {
  bool some = false;
  for (const std::atomic<UserObject*>& object : all.of) {
    some = some || object.load();
  }
  detail::user_kernel_state = some ? detail::kSomeUserKernels : detail::kNoUserKernels;
}

void read_environment_locked(UserKernels& all) {
  if (detail::user_kernel_state != detail::kUserKernelsUnread) {
    return;
  }
  provider(ProviderFamily::gemm);  // reads, and so checks, the variables of all families
  all.checks = checks_of_environment();
  const char* list = std::getenv("BINADE_KERNEL");
  for (const Loading& wanted : parse_list(list ? list : "")) {
    load_locked(all, wanted);
  }
  set_state_locked(all);
}

}  // namespace

UserObject* user_object_of(UserFunction function) {
  if (only_own) {
    return nullptr;
  }
  UserKernels& all = user_kernels();
  if (detail::user_kernel_state == detail::kUserKernelsUnread) {
    const std::lock_guard lock(all.mutex);
    read_environment_locked(all);
  }
  UserObject* object = all.of[static_cast<int>(function)].load();
  return object && object->functions[static_cast<int>(function)] ? object : nullptr;
}

int32_t user_device_bit(Device device) {
  return device.is_cpu()                    ? BINADE_ON_CPU
         : device.kind == Device::kEmulated ? BINADE_ON_EMULATED
                                            : BINADE_ON_CUDA;
}

void note_user_once(const std::string& note) {
  UserKernels& all = user_kernels();
  {
    const std::lock_guard lock(all.mutex);
    if (all.notes.find(note)) {
      return;
    }
    while (all.notes.take_beyond(plan_limit() - 1)) {
    }
    all.notes.add(note, {});
  }
  send_notice(note);
}

const char* user_symbol(UserFunction function) {
  return kFunctions[static_cast<int>(function)].symbol;
}

OwnKernels::OwnKernels() : outer_(only_own) { only_own = true; }
OwnKernels::~OwnKernels() { only_own = outer_; }

std::vector<std::string_view> user_kernel_names() {
  std::vector<std::string_view> names;
  for (const FunctionRow& row : kFunctions) {
    if (names.empty() || names.back() != row.kernel) {
      names.emplace_back(row.kernel);
    }
  }
  return names;
}

void set_user_kernel(std::string_view kernel, const std::string& path) {
  check_name(kernel, "set_user_kernel");
  UserKernels& all = user_kernels();
  const std::lock_guard lock(all.mutex);
  read_environment_locked(all);
  load_locked(all, {kernel, path, "set_user_kernel"});
  set_state_locked(all);
}

namespace {

UserObject* object_named(std::string_view kernel, const char* source) {
  check_name(kernel, source);
  UserKernels& all = user_kernels();
  const std::lock_guard lock(all.mutex);
  read_environment_locked(all);
  for (int i = 0; i < kUserFunctions; ++i) {
    if (kernel == kFunctions[i].kernel) {
      return all.of[i].load();
    }
  }
  return nullptr;
}

}  // namespace

std::string user_kernel(std::string_view kernel) {
  const UserObject* object = object_named(kernel, "user_kernel");
  return object ? object->path : "";
}

int64_t user_kernel_calls(std::string_view kernel) {
  const UserObject* object = object_named(kernel, "user_kernel_calls");
  return object ? object->calls.load() : 0;
}

void set_user_kernel_checks(int64_t calls) {
  check(calls >= 0, "set_user_kernel_checks: got ", calls, ", expected a number of calls");
  UserKernels& all = user_kernels();
  const std::lock_guard lock(all.mutex);
  read_environment_locked(all);
  all.checks = calls;
}

bool has_user_function(UserFunction function, Device device) {
  const UserObject* object = user_object_of(function);
  if (!object) {
    return false;
  }
  if ((object->devices & user_device_bit(device)) == 0) {
    note_user_once(text(kFunctions[static_cast<int>(function)].kernel, ": ",
                        printable(object->path), " has no kernel for the device ", device,
                        ": Binade's runs there"));
    return false;
  }
  return true;
}

bool user_computes(UserFunction function, Device device) {
  return detail::user_kernel_state.load(std::memory_order_relaxed) != detail::kNoUserKernels &&
         has_user_function(function, device);
}

}  // namespace binade::kernels
