// Tests the precision ledger: rows, casts and their bytes, and the findings of the linter.
#include <binade/core/autograd/op.h>
#include <binade/core/observe/label.h>
#include <binade/core/precision/precision_ledger.h>
#include <binade/core/precision/precision_rules.h>

#include "tests/core/autograd/autograd_testing.h"

namespace binade::precision_ledger_test {
namespace {

constexpr DType f16 = DType::f16;

const LedgerRow* row_of(const PrecisionLedger& ledger, const std::string& op,
                        bool in_backward = false) {
  for (const LedgerRow& row : ledger.rows()) {
    if (row.op == op && row.in_backward == in_backward) {
      return &row;
    }
  }
  return nullptr;
}

std::vector<PrecisionFinding::Kind> kinds(const PrecisionLedger& ledger) {
  std::vector<PrecisionFinding::Kind> all;
  for (const PrecisionFinding& finding : ledger.findings()) {
    all.push_back(finding.kind);
  }
  return all;
}

TEST(PrecisionLedger, SaysWhatRanInWhatWhyAndTheBytesOfEachCast) {
  Tensor w = randn({3, 4});
  w.require_grad();
  const Tensor x = ones({2, 3});
  PrecisionLedger ledger;
  {
    const LabelScope label(intern_label(0, "head"));
    const PrecisionScope scope(Precision::autocast(f16));
    const Tensor h = matmul(x, w);
    sum(exp(h) + matmul(x, w)).backward();
  }
  const LedgerRow* product = row_of(ledger, "matmul");
  ASSERT_TRUE(product);
  EXPECT_EQ(product->module, "head");
  EXPECT_EQ(product->inputs, "f16 f16");
  EXPECT_EQ(product->inside, "f32");
  EXPECT_EQ(product->output, "f16");
  EXPECT_EQ(product->why, "contraction under autocast f16");
  EXPECT_EQ(product->calls, 2);
  EXPECT_EQ(product->casts, 3);   // x twice, because it is no parameter; w once
  EXPECT_EQ(product->cached, 1);  // w
  EXPECT_EQ(product->cast_bytes, (6 + 6 + 12) * (4 + 2));
  const LedgerRow* exponential = row_of(ledger, "exp");
  ASSERT_TRUE(exponential);
  EXPECT_EQ(exponential->inputs + " " + exponential->output, "f32 f32");
  EXPECT_EQ(exponential->cast_bytes, 8 * (2 + 4));
  const LedgerRow* back = row_of(ledger, "cast", true);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->why, "gradient of a cast");
  EXPECT_EQ(row_of(ledger, "policy_cast"), nullptr);
  EXPECT_GT(ledger.cast_bytes(), product->cast_bytes + exponential->cast_bytes);
  EXPECT_HAS(ledger.table(), "contraction under autocast f16");
  EXPECT_HAS(ledger.table(), " casts saved by the cache");
  EXPECT_HAS(ledger.jsonl(),
             R"({"module": "head", "op": "matmul", "class": "contraction", )"
             R"("pass": "forward", "in": "f16 f16", "inside": "f32", "out": "f16")");
  EXPECT_TRUE(ledger.findings().empty()) << ledger.table();
}

TEST(PrecisionLedger, OpsInsideAnOpOfTheUsersOwnAreThere) {
  static constexpr Op kOuter{"my_outer", OpClass::pointwise};
  PrecisionLedger ledger;
  const PrecisionScope scope(Precision::mixed(f16).with({{.op = "exp"}}));
  const Tensor h = ones({2}, f16);
  auto [x] = kOuter.enter(h);
  Tensor y = cast(exp(x), f16);
  kOuter.record({x}, y, save(), [](const Tensor& dy) -> Grads { return {dy}; });
  ASSERT_EQ(ledger.rows().size(), 3u) << ledger.table();
  EXPECT_EQ(row_of(ledger, "exp")->why, "rule: op exp: f32");
  EXPECT_EQ(row_of(ledger, "cast")->why, "the program's own cast");
  EXPECT_EQ(row_of(ledger, "my_outer")->why, "pointwise takes its widest input");
}

TEST(PrecisionLedger, FindsALongReductionStoredInLowPrecision) {
  const auto found = [](const Tensor& x, const Precision& precision) {
    PrecisionLedger ledger;
    const PrecisionScope scope(precision);
    const LabelScope label(intern_label(0, "pool"));
    sum(x, {1});
    return ledger.findings();
  };
  const Tensor longer = zeros({2, 2049}, f16);
  const auto findings = found(longer, Precision::mixed(f16));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].text,
            "long reduction: sum in module pool reduces 2049 terms and stores f16, which has 11 "
            "bits and ends at 65504; keep the result in f32 with Store::apex or a rule {.op = "
            "\"sum\", .dtype = DType::f32}");
  EXPECT_TRUE(found(zeros({2, 2048}, f16), Precision::mixed(f16)).empty());
  EXPECT_TRUE(found(longer, Precision::mixed(f16).with(Store::apex)).empty());
  EXPECT_TRUE(found(longer, Precision::mixed(f16).with({{.op = "sum"}})).empty());
}

TEST(PrecisionLedger, FindsCastPingPong) {
  Tensor leaf = randn({2, 3});
  leaf.require_grad();
  const Tensor x = cast(leaf, f16);
  PrecisionLedger ledger;
  const Tensor wide = cast(x, DType::f32);
  cast(transpose(reshape(wide, {3, 2}), 0, 1), f16);
  EXPECT_EQ(kinds(ledger), (std::vector{PrecisionFinding::cast_ping_pong}));
  EXPECT_HAS(ledger.findings()[0].text, "what was widened to f32 and only moved since");
  cast(wide + wide, f16);  // casting a computed tensor has a purpose
  EXPECT_EQ(ledger.findings()[0].count, 1);
  const PrecisionScope scope(Precision::autocast(f16));
  matmul(transpose(wide, 0, 1), randn({2, 2}));  // cast by the policy
  ASSERT_EQ(ledger.findings().size(), 2u);
  EXPECT_EQ(ledger.findings()[1].op, "matmul");
}

TEST(PrecisionLedger, FindsALeafWithoutMaster) {
  Tensor low = randn({2}, f16), wide = randn({2});
  low.require_grad();
  wide.require_grad();
  PrecisionLedger ledger;
  square(wide);
  EXPECT_TRUE(ledger.findings().empty());
  square(low);
  square(low);
  ASSERT_EQ(kinds(ledger), (std::vector{PrecisionFinding::leaf_without_master}));
  EXPECT_EQ(ledger.findings()[0].count, 2);
  EXPECT_HAS(ledger.jsonl(), R"("finding": "leaf without master", "op": "square")");
}

TEST(PrecisionLedger, ExplainsAPolicyBeforeItRuns) {
  const std::string page = explain_precision(Precision::mixed(f16).with({{.op = "exp"}}));
  EXPECT_HAS(page, "mixed f16, 1 rule: weights f16 with f32 masters\n");
  EXPECT_HAS(page, "contraction     f32    f16  f32     f16  contraction under mixed f16\n");
  EXPECT_HAS(page, "loss            f16    f16  f32     f32  loss takes its widest input\n");
  EXPECT_HAS(page, "rule op exp: f32\n");
}

}  // namespace
}  // namespace binade::precision_ledger_test
