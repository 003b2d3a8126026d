// CUDA C++ of users, as binade kernel reads it.
#include <binade/lab/source/translate.h>

#include "tests/fuzz/target_list_internal.h"

namespace binade::fuzz {

// The path has no folder, so that an #include names no file of this machine by accident.
void parse_cuda_source(Bytes bytes) {
  const std::string_view source = text_of(bytes);
  if (source.find("include") != std::string_view::npos &&
      source.find('/') != std::string_view::npos) {
    return;
  }
  const lab::Translation translation = lab::translate("no/such/folder/fuzz.cu", source);
  require(translation.code.find("binade_lab_solve") != std::string::npos, "the entry is called");
  lab::parameters_of("fuzz.cu", source, "reference");
}

}  // namespace binade::fuzz
