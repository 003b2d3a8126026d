// Helpers: leaves of f64, their values, and the text of an error.
#pragma once
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <gtest/gtest.h>

#include <tests/support/error_of.h>

namespace binade {

inline Tensor leaf(std::initializer_list<double> values, const Dims& sizes) {
  Tensor t = from_values(values, sizes, DType::f64);
  return t.require_grad();
}

inline std::vector<double> values(const Tensor& t) {
  std::vector<double> out;
  for (int64_t i = 0; i < t.numel(); ++i) {
    out.push_back(t.at(i));
  }
  return out;
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << "got: " << (text)

}  // namespace binade
