// The functions that -fsanitize=undefined calls in kernels of the race build, where its own runtime
// is not linked: undefined behaviour becomes a finding with block and thread.
#include <binade/kernels/host/race.h>

#if BINADE_HOST_RACE
#include <binade/kernels/host/findings_internal.h>

#include <cstdlib>
#include <cstring>
#include <optional>

namespace binade::kernels::host {
namespace {

// The layout of the compiler's data (compiler-rt, lib/ubsan/ubsan_value.h and ubsan_handlers.h).
struct UndefinedSite {
  const char* file;
  uint32_t line, column;
};
struct UndefinedType {
  uint16_t kind, info;  // kind 0: an integer, info: 2 log2(bits) + its sign
  char name[1];
};
struct MismatchData {
  UndefinedSite site;
  const UndefinedType* type;
  unsigned char log_alignment, check;
};
struct IndexData {
  UndefinedSite site;
  const UndefinedType *array, *index;
};
struct UndefinedData {
  UndefinedSite site;
  const UndefinedType *type, *other;
};

// Quiet, if a kernel runs.
class QuietHook {
 public:
  QuietHook() {
    if (current_executor != nullptr) {
      quiet_.emplace(*current_executor);
    }
  }

 private:
  std::optional<Quiet> quiet_;
};

// Adds a finding, and ends the launch if it may not go on.
void found(FindingKind kind, const UndefinedSite& at, FoundElement element, bool ends,
           std::string what) {
  const Site site{at.file, static_cast<int>(at.line)};
  Executor* x = current_executor;
  if (x == nullptr || x->current < 0) {  // host code in the source of a kernel
    Finding finding;
    finding.kind = kind;
    finding.severity = severity_of(kind);
    finding.first.line = line_of(site);
    finding.first.line.column = static_cast<int>(at.column);
    finding.element = std::move(element);
    finding.message = text("host code: ", what, " at ", site);
    add_finding(finding);
    return;
  }
  const FindingKey key{kind, reinterpret_cast<uint64_t>(at.file) + at.line, at.column, nullptr};
  if (!ends && goes_on(*x) && count_again(key, *x, nullptr)) {
    return;
  }
  Finding finding = finding_here(*x, kind, site, Act::run);
  finding.first.line.column = static_cast<int>(at.column);
  finding.element = std::move(element);
  finding.message = text(where_of(*x), what, " at ", site);
  std::string().swap(what);
  if (ends || !goes_on(*x)) {
    die_with(*x, *current_thread(*x).fiber, key, std::move(finding));
  }
  add_finding(key, *x, nullptr, std::move(finding));
}

// The value of an integer that the compiler passes by value.
int64_t number(const UndefinedType& type, uintptr_t value) {
  const unsigned bits = 1u << (type.info >> 1);
  if ((type.info & 1) == 0 || bits >= 64) {
    return static_cast<int64_t>(value);
  }
  const unsigned unused = 64 - bits;
  return static_cast<int64_t>(static_cast<uint64_t>(value) << unused) >> unused;
}

void overflow(const void* data, const char* operation) {
  const auto& d = *static_cast<const UndefinedData*>(data);
  found(FindingKind::undefined_math, d.site, {}, false,
        text(operation, " overflows ", d.type->name));
}

void mismatch(const void* data, uintptr_t pointer) {
  const auto& d = *static_cast<const MismatchData*>(data);
  const uintptr_t alignment = uintptr_t{1} << d.log_alignment;
  const Executor* x = current_executor;
  FoundElement element;
  if (x != nullptr && x->current >= 0) {
    element = element_of(*x, reinterpret_cast<const void*>(pointer), false);
  }
  if (pointer % alignment == 0) {
    found(FindingKind::out_of_bounds, d.site, {}, true, text("null pointer to ", d.type->name));
    return;
  }
  const std::string name =
      element.array.empty() ? std::string("an address") : text("the address of ", element);
  found(FindingKind::misaligned, d.site, std::move(element), false,
        text("access of ", d.type->name, " needs a multiple of ", alignment, ", and ", name, " is ",
             pointer % alignment, " beyond one"));
}

void index_out_of_bounds(const void* data, uintptr_t index) {
  const auto& d = *static_cast<const IndexData*>(data);
  FoundElement element;
  element.space = MemorySpace::local;
  element.index = number(*d.index, index);
  const char* size = std::strchr(d.array->name, '[');
  element.count = size != nullptr ? std::atoll(size + 1) : 0;
  found(FindingKind::out_of_bounds, d.site, element, true,
        text("index ", element.index, " out of bounds of ", d.array->name));
}

void divide(const void* data) {
  const auto& d = *static_cast<const UndefinedData*>(data);
  found(FindingKind::undefined_math, d.site, {}, true,
        text("division of ", d.type->name, " by zero, or of its smallest number by -1"));
}
void shift(const void* data) {
  const auto& d = *static_cast<const UndefinedData*>(data);
  found(FindingKind::undefined_math, d.site, {}, false,
        text("shift of ", d.type->name, " by a count that is negative or too large"));
}
void convert(const void* data) {
  const auto& d = *static_cast<const UndefinedData*>(data);
  found(FindingKind::undefined_math, d.site, {}, false,
        text("conversion of ", d.type->name, " to a type that does not hold the value"));
}
void invalid(const void* data) {
  const auto& d = *static_cast<const UndefinedData*>(data);
  found(FindingKind::undefined_math, d.site, {}, false, text("a value that is no ", d.type->name));
}
void unreachable(const void* data) {
  const auto& site = *static_cast<const UndefinedSite*>(data);
  found(FindingKind::undefined_math, site, {}, true, "the end of a function without its result");
}

}  // namespace
}  // namespace binade::kernels::host

// NOLINTBEGIN(bugprone-reserved-identifier): the names are the compiler's.
extern "C" {
namespace undefined = binade::kernels::host;
#define BINADE_UNDEFINED(name, parameters, call)  \
  void __ubsan_handle_##name parameters {         \
    const undefined::QuietHook quiet;             \
    undefined::call;                              \
  }                                               \
  void __ubsan_handle_##name##_abort parameters { \
    const undefined::QuietHook quiet;             \
    undefined::call;                              \
  }
BINADE_UNDEFINED(add_overflow, (void* d, void*, void*), overflow(d, "addition"))
BINADE_UNDEFINED(sub_overflow, (void* d, void*, void*), overflow(d, "subtraction"))
BINADE_UNDEFINED(mul_overflow, (void* d, void*, void*), overflow(d, "multiplication"))
BINADE_UNDEFINED(negate_overflow, (void* d, void*), overflow(d, "negation"))
BINADE_UNDEFINED(divrem_overflow, (void* d, void*, void*), divide(d))
BINADE_UNDEFINED(shift_out_of_bounds, (void* d, void*, void*), shift(d))
BINADE_UNDEFINED(out_of_bounds, (void* d, void* i),
                 index_out_of_bounds(d, reinterpret_cast<uintptr_t>(i)))
BINADE_UNDEFINED(type_mismatch_v1, (void* d, void* p), mismatch(d, reinterpret_cast<uintptr_t>(p)))
BINADE_UNDEFINED(float_cast_overflow, (void* d, void*), convert(d))
BINADE_UNDEFINED(load_invalid_value, (void* d, void*), invalid(d))
void __ubsan_handle_builtin_unreachable(void* d) {
  const undefined::QuietHook quiet;
  undefined::unreachable(d);
}
void __ubsan_handle_missing_return(void* d) { __ubsan_handle_builtin_unreachable(d); }
}
// NOLINTEND(bugprone-reserved-identifier)

#endif
