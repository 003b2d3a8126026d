#include <binade/lab/cases/case_file.h>
namespace binade::lab {
Case read_case_file(const std::string& path) { throw Error(path); }
}  // namespace binade::lab
