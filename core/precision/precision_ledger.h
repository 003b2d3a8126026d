// PrecisionLedger: which op ran in which dtype, why, and every cast with its bytes.
//
//   PrecisionLedger ledger;             // on this thread, while it exists
//   loss = model(x); loss.backward();
//   std::puts(ledger.table().c_str());  // by op, dtypes and module
//   for (const PrecisionFinding& f : ledger.findings()) std::puts(f.text.c_str());
//
// It computes nothing and does not wait for the device. docs/mixed_precision.md explains an
// example.
#pragma once
#include <binade/core/observe/observer.h>
#include <binade/core/precision/op_class.h>
#include <binade/core/precision/precision.h>

#include <map>
#include <string>
#include <vector>

namespace binade {

// All calls of one op in one module with the same dtypes for the same reason.
struct LedgerRow {
  std::string module = {}, op = {};
  OpClass op_class = OpClass::movement;
  bool in_backward = false;
  std::string inputs = {}, inside = {}, output = {};  // dtypes: "f16 f16", "f32", "f16"
  std::string why = {};
  int64_t calls = 0;
  int64_t casts = 0, cached = 0;  // of its inputs: made, or found in the cast cache
  int64_t cast_bytes = 0;         // read and written by the casts made
};

// A likely mistake, reported once per op and module.
struct PrecisionFinding {
  enum Kind : uint8_t {
    long_reduction,       // more than 2048 terms, stored in f16 or bf16
    cast_ping_pong,       // f16 -> f32 -> f16 with nothing computed between
    leaf_without_master,  // an f16 or bf16 parameter whose small updates will be lost
  };
  Kind kind;
  std::string op = {}, module = {};
  std::string text = {};  // the whole finding, with what to do
  int64_t count = 0;
};
const char* to_string(PrecisionFinding::Kind kind);

class PrecisionLedger final : public OpObserver {
 public:
  static constexpr int64_t kLongReduction = 2048;

  PrecisionLedger() = default;

  // Ordered by the first call.
  const std::vector<LedgerRow>& rows() const { return rows_; }
  const std::vector<PrecisionFinding>& findings() const { return findings_; }
  int64_t casts() const;
  int64_t cast_bytes() const;

  std::string table() const;  // rows, totals and findings as text
  std::string jsonl() const;  // an object per row and per finding

  void result(const OpEvent& event) override;
  void policy(const PolicyEvent& event) override;

 private:
  struct Entered {  // an op that has started under a policy
    const char* op;
    uint32_t module;
    std::string why;
    int64_t casts, cached, bytes;
  };
  void lint(const OpEvent& event);
  void lint_cast(const char* op, uint32_t module, const Tensor& from, DType to);
  void find(PrecisionFinding::Kind kind, const char* op, uint32_t module, const std::string& what);

  std::vector<LedgerRow> rows_;
  std::map<std::string, size_t> index_;
  std::vector<PrecisionFinding> findings_;
  std::vector<Entered> entered_;
  ObserverScope scope_{*this};
};

// A table of what the policy does with each class of ops, for f32 and for low inputs, and of its
// rules.
std::string explain_precision(const Precision& precision);

}  // namespace binade
