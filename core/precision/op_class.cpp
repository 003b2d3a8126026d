#include <binade/core/autograd/op.h>
#include <binade/core/precision/op_class.h>
#include <binade/kernels/base/error.h>
#include <binade/kernels/pointwise/pointwise.h>

#include <map>
#include <mutex>

namespace binade {

namespace detail {
// The ops that are written out in core/ops (cmake/OpClasses.cmake).
std::vector<OpInfo> library_ops();
}  // namespace detail

namespace {

constexpr const char* kClassName[] = {"contraction", "pointwise", "wide_pointwise", "reduction",
                                      "norm",        "loss",      "movement"};

// The ops that are defined by the lists of pointwise operations.
constexpr std::pair<const char*, OpClass> kListedOps[] = {
#define BINADE_ROW(name, Functor, saved, code, op_class, ...) {#name, OpClass::op_class},
    BINADE_UNARY_PLAIN_OPS(BINADE_ROW) BINADE_UNARY_OPTION_OPS(BINADE_ROW)
#undef BINADE_ROW
#define BINADE_ROW(name, Functor, dtypes, op_class) {#name, OpClass::op_class},
        BINADE_BINARY_PLAIN_OPS(BINADE_ROW)
#undef BINADE_ROW
};

struct OpClassTable {
  OpClassTable() {
    for (const auto& [name, op_class] : kListedOps) {
      classes.emplace(name, op_class);
    }
    for (const OpInfo& op : detail::library_ops()) {
      const auto [known, fresh] = classes.emplace(op.name, op.op_class);
      check(fresh || known->second == op.op_class, "op classes: ", op.name, " is ",
            to_string(known->second), " in kernels/pointwise/pointwise.h and ",
            to_string(op.op_class), " in core/ops");
    }
  }
  std::mutex mutex;
  std::map<std::string, OpClass> classes;
};

OpClassTable& op_class_table() {
  static OpClassTable* instance = new OpClassTable;
  return *instance;
}

}  // namespace

const char* to_string(OpClass op_class) { return kClassName[static_cast<int>(op_class)]; }

OpClass parse_op_class(const std::string& name) {
  for (OpClass op_class : kOpClasses) {
    if (name == to_string(op_class)) {
      return op_class;
    }
  }
  fail("op class: got '", name,
       "', expected contraction, pointwise, wide_pointwise, reduction, norm or loss");
}

std::vector<OpInfo> op_classes() {
  std::lock_guard lock(op_class_table().mutex);
  std::vector<OpInfo> all;
  for (const auto& [name, op_class] : op_class_table().classes) {
    all.push_back({name, op_class});
  }
  return all;
}

void declare_op(const Op& op) {
  std::lock_guard lock(op_class_table().mutex);
  const auto [known, fresh] = op_class_table().classes.emplace(op.name, op.op_class);
  check(fresh || known->second == op.op_class, "declare_op: ", op.name, " is a ",
        to_string(known->second), " already, got ", to_string(op.op_class));
}

}  // namespace binade
