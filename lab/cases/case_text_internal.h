// What a case file says, before its reference is compiled.
#pragma once
#include <binade/lab/cases/case_internal.h>

namespace binade::lab {

struct CaseText {
  Case made = {};
  std::vector<std::string> shapes = {};
  std::string reference = {}, flops = "0";
  std::vector<FillOptions> fills = {};  // of the arrays and scalars, which come before the sizes
  uint64_t units = 16;
};
// Throws Error that names `path` for a text that is no case: not this JSON, a missing part, a shape
// or an extent that does not fit.
CaseText case_text_from(const std::string& path, std::string_view json);

}  // namespace binade::lab
