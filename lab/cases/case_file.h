// Cases of the user's own, from a JSON file beside a reference in C++: docs/kernel_lab.md has the
// format.
#pragma once
#include <binade/lab/cases/case.h>

namespace binade::lab {

// Reads the file and compiles its reference. Throws Error that names the file.
Case read_case_file(const std::string& path);

}  // namespace binade::lab
