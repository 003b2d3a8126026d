// Warnings: what a program survives but its author should know. A line on stderr, unless a handler
// is set.
#pragma once
#include <functional>
#include <string>

namespace binade {

using WarningHandler = std::function<void(const std::string& text)>;

// Thread-safe. Returns the handler before; an empty one stands for stderr.
WarningHandler set_warning_handler(WarningHandler handler);
void warn(const std::string& text);

}  // namespace binade
