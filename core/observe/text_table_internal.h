// Columns of text, each as wide as its widest cell.
#pragma once
#include <string>
#include <vector>

namespace binade {

// The first row is the heading. Lines have no trailing blanks.
std::string text_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace binade
