#include <binade/core/autograd/op.h>
#include <binade/core/precision/op_class.h>
#include <binade/kernels/base/error.h>

#include <map>
#include <mutex>

namespace binade {

namespace detail {
std::vector<OpInfo> library_ops();  // generated from core/ops (cmake/OpClasses.cmake)
}

namespace {

constexpr const char* kClassName[] = {"contraction", "pointwise", "wide_pointwise", "reduction",
                                      "norm",        "loss",      "movement"};

struct Table {
  Table() {
    for (const OpInfo& op : detail::library_ops()) {
      classes.emplace(op.name, op.op_class);
    }
  }
  std::mutex mutex;
  std::map<std::string, OpClass> classes;
};

Table& table() {
  static Table* instance = new Table;
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
  std::lock_guard lock(table().mutex);
  std::vector<OpInfo> all;
  for (const auto& [name, op_class] : table().classes) {
    all.push_back({name, op_class});
  }
  return all;
}

void declare_op(const Op& op) {
  std::lock_guard lock(table().mutex);
  const auto [known, fresh] = table().classes.emplace(op.name, op.op_class);
  check(fresh || known->second == op.op_class, "declare_op: ", op.name, " is a ",
        to_string(known->second), " already, got ", to_string(op.op_class));
}

}  // namespace binade
