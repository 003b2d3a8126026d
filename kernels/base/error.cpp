#include <binade/kernels/base/error.h>
#include <binade/kernels/base/printable.h>

#include <charconv>

namespace binade::detail {
namespace {
template <class T>
void append_chars(std::string& text, T part) {
  char buffer[40];
  auto [end, status] = std::to_chars(buffer, buffer + sizeof buffer, part);
  text.append(buffer, end);
}
}  // namespace

void append(std::string& text, std::string_view part) { text.append(part); }
void append_number(std::string& text, long long part) { append_chars(text, part); }
void append_number(std::string& text, unsigned long long part) { append_chars(text, part); }
void append_number(std::string& text, double part) { append_chars(text, part); }
void throw_error(const std::string& text) { throw Error(printable(text)); }

}  // namespace binade::detail
