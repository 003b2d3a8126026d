// The text of the Error that f throws, or "none".
#pragma once
#include <binade/kernels/base/error.h>

#include <string>

namespace binade {

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

}  // namespace binade
