#include <binade/core/precision/cast_cache_internal.h>
#include <binade/core/precision/format_calls_internal.h>

#include <utility>

namespace binade {
namespace {

struct ThreadScales {
  ScaleTape *kept = nullptr, *taken = nullptr;
  uint64_t backwards = 0;
};
constinit thread_local ThreadScales thread_scales;

}  // namespace

FormatCalls& FormatCalls::in(const PrecisionScope& scope) {
  scope.cache = scope.cache ? scope.cache : new CastCache;
  std::unique_ptr<FormatCalls>& calls = scope.cache->calls;
  if (!calls) {
    calls = std::make_unique<FormatCalls>();
  }
  return *calls;
}

std::optional<FormatCalls> FormatCalls::of(const PrecisionScope& scope) {
  return scope.cache && scope.cache->calls ? std::optional(*scope.cache->calls) : std::nullopt;
}

void FormatCalls::note_backward() { ++thread_scales.backwards; }
uint64_t FormatCalls::backwards() { return thread_scales.backwards; }

int64_t FormatCalls::begin(uint32_t module, std::string_view op) {
  if (backwards_ != backwards()) {
    count_.clear();
    backwards_ = backwards();
  }
  return count_[{module, std::string(op)}]++;
}

int64_t FormatCalls::current(uint32_t module, std::string_view op) const {
  const auto found = count_.find({module, std::string(op)});
  return found == count_.end() ? 0 : found->second - 1;
}

FormatCalls FormatCalls::resumed() const {
  FormatCalls calls = *this;
  calls.backwards_ = backwards();
  return calls;
}

KeptScales::KeptScales(ScaleTape& tape) : before_(std::exchange(thread_scales.kept, &tape)) {}
KeptScales::~KeptScales() { thread_scales.kept = before_; }
ScaleTape* KeptScales::of_thread() { return thread_scales.kept; }

TakenScales::TakenScales(ScaleTape& tape) : before_(std::exchange(thread_scales.taken, &tape)) {
  tape.next = 0;
}
TakenScales::~TakenScales() { thread_scales.taken = before_; }
ScaleTape* TakenScales::of_thread() { return thread_scales.taken; }

}  // namespace binade
