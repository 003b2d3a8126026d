// Tests the table of op classes, and the page generated from it.
#include <binade/core/autograd/op.h>

#include <fstream>
#include <set>
#include <sstream>

#include "tests/core/autograd/autograd_testing.h"

namespace binade::op_class_test {
namespace {

TEST(OpClasses, EveryOpHasOneClassAndEveryClassItsOps) {
  std::set<std::string> names;
  std::set<OpClass> classes;
  for (const OpInfo& op : op_classes()) {
    EXPECT_TRUE(names.insert(op.name).second) << op.name;
    classes.insert(op.op_class);
  }
  EXPECT_EQ(classes.size(), std::size(kOpClasses));
  for (const char* name : {"linear", "conv2d", "relu", "exp", "softmax", "layer_norm",
                           "cross_entropy", "reshape", "rdiv_scalar"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  EXPECT_EQ(parse_op_class("wide_pointwise"), OpClass::wide_pointwise);
  EXPECT_HAS(error_of([] { parse_op_class("wide"); }),
             "op class: got 'wide', expected contraction");
}

TEST(OpClasses, ThePageIsTheOneThatIsMade) {
  std::ifstream file(std::string(BINADE_SOURCE_DIR) + "/docs/op_classes.md");
  std::stringstream page;
  page << file.rdbuf();
  EXPECT_EQ(page.str(), op_classes_page())
      << "make it anew: build/release/bin/binade op-classes > docs/op_classes.md";
}

}  // namespace
}  // namespace binade::op_class_test
