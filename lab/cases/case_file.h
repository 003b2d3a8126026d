// Users can define cases in a JSON file with a reference in C++ beside it. docs/kernel_lab.md
// describes the format.
#pragma once
#include <binade/lab/cases/case.h>

namespace binade::lab {

// Reads the file and compiles its reference. Throws an Error that names the file.
Case read_case_file(const std::string& path);

}  // namespace binade::lab
