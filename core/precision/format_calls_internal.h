// Numbers the calls of contractions, so that each has delayed scales of its own, also in a function
// that recompute() runs twice (internal to core; core/precision/simulated_formats.h).
#pragma once
#include <binade/core/precision/precision.h>
#include <binade/core/tensor/tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace binade {

// Numbers the calls of an op in a module from 0. A PrecisionScope has one, so the numbers begin
// anew with each forward of a module. They also begin anew after each backward, since a scope may
// stand around a whole training loop.
class FormatCalls {
 public:
  // The numbers of a scope: the first call makes them if there are none.
  static FormatCalls& in(const PrecisionScope& scope);
  static std::optional<FormatCalls> of(const PrecisionScope& scope);
  // Says that this thread begins a backward.
  static void note_backward();

  int64_t begin(uint32_t module, std::string_view op);
  // The number of the call that began last.
  int64_t current(uint32_t module, std::string_view op) const;
  // The same numbers for code that runs inside a backward.
  FormatCalls resumed() const;

 private:
  static uint64_t backwards();

  std::map<std::pair<uint32_t, std::string>, int64_t> count_;
  uint64_t backwards_ = backwards();
};

// The delayed scales of a function, in the order of their use.
struct ScaleTape {
  std::vector<Tensor> scales = {};
  size_t next = 0;
};

// While one exists, delayed scales that this thread uses are kept on the tape, and histories go on
// without recording too.
class KeptScales {
 public:
  explicit KeptScales(ScaleTape& tape);
  ~KeptScales();
  KeptScales(const KeptScales&) = delete;
  KeptScales& operator=(const KeptScales&) = delete;
  static ScaleTape* of_thread();  // null: none exists

 private:
  ScaleTape* before_;
};

// While one exists, this thread takes its delayed scales from the tape, and histories stay as they
// are.
class TakenScales {
 public:
  explicit TakenScales(ScaleTape& tape);
  ~TakenScales();
  TakenScales(const TakenScales&) = delete;
  TakenScales& operator=(const TakenScales&) = delete;
  static ScaleTape* of_thread();  // null: none exists

 private:
  ScaleTape* before_;
};

}  // namespace binade
