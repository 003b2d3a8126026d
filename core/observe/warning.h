// Warnings: conditions that do not stop a program but that its author should know about. A line on
// stderr, unless a handler is set.
#pragma once
#include <functional>
#include <string>

namespace binade {

using WarningHandler = std::function<void(const std::string& text)>;

// Thread-safe. Returns the previous handler; an empty one stands for stderr.
WarningHandler set_warning_handler(WarningHandler handler);
void warn(const std::string& text);

}  // namespace binade
