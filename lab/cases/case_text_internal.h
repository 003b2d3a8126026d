// The contents of a case file before its reference is compiled.
#pragma once
#include <binade/lab/cases/case_internal.h>

namespace binade::lab {

struct CaseText {
  Case made = {};
  std::vector<std::string> shapes = {};
  std::string reference = {}, flops = "0";
  std::vector<FillOptions> fills = {};  // one for each array and scalar; these precede the sizes
  uint64_t units = 16;
};
// Throws an Error that names `path` if the text is not a valid case: not this JSON, a missing part,
// or a shape or extent that does not fit.
CaseText case_text_from(const std::string& path, std::string_view json);

}  // namespace binade::lab
