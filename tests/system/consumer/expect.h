// EXPECT(condition): ends the program with the line of the first condition that is false.
#pragma once
#include <binade/binade.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#define EXPECT(...)                                                                  \
  do {                                                                               \
    if (!(__VA_ARGS__)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #__VA_ARGS__); \
      std::exit(1);                                                                  \
    }                                                                                \
  } while (false)

inline bool close(const binade::Tensor& a, const binade::Tensor& b, double tolerance = 1e-5) {
  return a.sizes() == b.sizes() && binade::allclose(a, b, tolerance, tolerance);
}

// The text of the Error that f throws.
inline std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const binade::Error& error) {
    return error.what();
  }
  return "no error";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The warnings that f gives.
inline std::vector<std::string> warnings_of(const std::function<void()>& f) {
  std::vector<std::string> texts;
  const auto before =
      binade::set_warning_handler([&](const std::string& text) { texts.push_back(text); });
  f();
  binade::set_warning_handler(before);
  return texts;
}
