// The report of a lens (train/lens.h): sums the steps of a run per tensor. It is a heat map of
// layers and exponents, as text or as one HTML file, and the largest static loss scale that the
// gradients allow.
#pragma once
#include <binade/core/io/file_system.h>
#include <binade/train/lens.h>

namespace binade::train {

// A tensor, over all observed steps.
struct LensRow {
  std::string kind, layer, tensor;
  double elements = 0, zeros = 0, nans = 0, infinities = 0;
  double overflow = 0, subnormal = 0, flushed = 0, changed_in_bf16 = 0;  // elements
  double changed = 0, lost_in_f16 = 0, lost_in_bf16 = 0;                 // of updates
  double largest = 0;
  // The smallest loss scale at which lines of it were stored in f16 before they were counted; 0:
  // none was. Then `flushed` is a lower bound, and `zeros` includes what storing flushed.
  double rounded_at = 0;
  std::vector<double> exponents = {};  // elements per exponent, from ExponentCounts::kLeast - 1
};

// One of the elements of an exponent that f16 changes most.
struct LensWorst {
  int exponent = 0;
  std::vector<int64_t> place = {};            // its index in the tensor
  double value = 0, in_f16 = 0, in_bf16 = 0;  // the true value, and what it becomes
};

// A tensor at one observed step.
struct LensMoment {
  int64_t step = 0;
  size_t row = 0;  // in LensReport::rows
  double elements = 0, zeros = 0, nans = 0, infinities = 0, largest = 0, scale = 1;
  int least_exponent = 0;
  std::vector<double> exponents = {};  // elements per exponent, from least_exponent on
  std::vector<LensWorst> worst = {};   // by exponent, of each the worst first
};

struct LensScale {
  double scale, flushed = 0, subnormal = 0, overflow = 0;  // elements of all gradients
  // False if some gradients were stored in f16 at this scale or a smaller one: what this scale
  // flushes was flushed before it was counted.
  bool shows_flushed = true;
};

struct LensReport {
  std::vector<LensRow> rows;  // in the order of their first line
  int64_t steps = 0, first_step = 0, last_step = 0;
  double gradients = 0;  // elements that are finite and not 0
  double largest_gradient = 0;
  double static_scale = 0;  // 0: no gradient was seen
  // The smallest loss scale at which gradients were stored in f16 before they were counted; 0: none
  // were. Then flushed elements of the scales are lower bounds.
  double rounded_at = 0;
  std::vector<LensScale> scales;
  std::vector<LensMoment> moments;  // in the order of the file
};

// Throws if the file cannot be read or a line is not a record of a lens. An incomplete last line,
// left by a killed run, is ignored.
LensReport read_lens(const std::string& file, FileSystem& files = file_system());

// Moves the lines of steps from `first_step` on, which a resumed run writes again, to another file
// (keep_lines in train/run_directory.h).
void keep_lens_lines(const std::string& file, int64_t first_step,
                     FileSystem& files = file_system());

// Plain ASCII, for any terminal.
std::string to_text(const LensReport& report);
// One file that needs no other file: the heat map over all steps, and one of single steps with a
// slider.
std::string to_html(const LensReport& report);
// Two or more runs side by side, under one slider, each with its name.
struct NamedLens {
  std::string name;
  LensReport report;
};
std::string to_html(const std::vector<NamedLens>& runs);
// The part of such pages with the slider. A page has it once; it needs the script of head().
std::string lens_over_time(const std::vector<const NamedLens*>& runs);
// The body of that page, for other pages: at most so many rows of each kind of tensor.
std::string lens_section(const LensReport& report, size_t most_rows);

// The exponents that the rows have, at most 64 of them from the top.
struct ExponentSpan {
  int least, most;
};
ExponentSpan span_of(const LensReport& report);
// Elements of a row in exponent e; in the first of a span also those below it.
double elements_at(const LensRow& row, const ExponentSpan& span, int e);
// The effects of f16 on a row as text: "flushed 1.2%, overflow 0.1%". A row that was stored in f16
// says so: "rounded at 1024: flushed at least 1.2%, zero or flushed before 30%".
std::string effects_of(const LensRow& row);
// What a static scale flushes, as text; and the reason why it may be a bound or not known.
std::string flushed_text(const LensReport& report, const LensScale& scale);
std::string rounding_note(const LensReport& report);

}  // namespace binade::train
