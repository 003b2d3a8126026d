// Bad shapes, dims, dtypes and attributes give an Error that names the op.
#include <tests/op_table/compare.h>

#include <gtest/gtest.h>

namespace binade::op_table {
namespace {

class Errors : public testing::TestWithParam<size_t> {};

TEST_P(Errors, NameTheOp) {
  const OpRow& row = op_table()[GetParam()];
  for (const ErrorCase& bad : row.errors) {
    const std::string label =
        text("op=", row.name, "(", row.attributes, ") error case: ", bad.what);
    try {
      bad.run();
      ADD_FAILURE() << "no error: " << label;
    } catch (const Error& error) {
      EXPECT_TRUE(names_op(error, row)) << "got '" << error.what() << "': " << label;
    } catch (const std::exception& error) {
      ADD_FAILURE() << "not a binade::Error but '" << error.what() << "': " << label;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OpTable, Errors, testing::ValuesIn(row_indices([](const OpRow& row) {
                           return !row.errors.empty();
                         })),
                         [](const auto& info) { return row_name(info.param); });

}  // namespace
}  // namespace binade::op_table
