// Targets for the inputs of binade kernel: CUDA C++ of users, and their case files.
#include <binade/lab/cases/case_text_internal.h>
#include <binade/lab/source/subscript.h>
#include <binade/lab/source/translate.h>

#include "tests/fuzz/target_list_internal.h"

namespace binade::fuzz {
namespace {

// Every place that a compiler could report.
void find_subscripts(std::string_view source) {
  constexpr size_t kMostPlaces = 1000;
  int line = 1, column = 1;
  for (size_t i = 0; i < std::min(source.size(), kMostPlaces); ++i, ++column) {
    for (const int dimensions : {1, 2}) {
      const auto found = lab::subscript_at(source, line, column, dimensions);
      require(!found || found->base.starts_with(found->array), "an array begins what is indexed");
    }
    if (source[i] == '\n') {
      lab::subscript_at(source, line++, 0, 1);
      column = 0;
    }
  }
}

}  // namespace

// The path has no folder, so that an #include names no file of this machine by accident.
void parse_cuda_source(Bytes bytes) {
  const std::string_view source = text_of(bytes);
  if (source.find("include") != std::string_view::npos &&
      source.find('/') != std::string_view::npos) {
    return;
  }
  find_subscripts(source);
  const lab::Translation translation = lab::translate("no/such/folder/fuzz.cu", source);
  require(translation.code.find("binade_lab_solve") != std::string::npos, "the entry is called");
  lab::parameters_of("fuzz.cu", source, "reference");
  for (const lab::Parameter& parameter : translation.parameters) {
    require(lab::bytes_of(parameter.element) >= 1 && *lab::name_of(parameter.element) != '\0',
            "an element has a size and a name");
  }
}

void parse_kernel_case(Bytes bytes) {
  const lab::CaseText text = lab::case_text_from("fuzz.json", text_of(bytes));
  require(!text.made.shapes.empty() && !text.made.inputs.empty(), "there is something to try");
  for (const lab::Sizes& sizes : text.made.shapes) {
    int64_t elements = 0;
    for (const lab::CaseParameter& p : text.made.parameters) {
      elements += p.extents.empty() ? 0 : text.made.count(p, sizes);
    }
    require(elements >= 1 && elements <= int64_t{1} << 30, "the arrays of a shape fit");
    lab::extent_of(text.flops, sizes);
    require(text.made.shape_from(text.made.text_of(sizes)) == sizes, "a shape is its text");
  }
}

}  // namespace binade::fuzz
