// Formats numbers of bytes for messages.
#pragma once
#include <string>

namespace binade {

std::string byte_text(double bytes);  // "1.18 MB", "12.3 GB": powers of 1000

}  // namespace binade
