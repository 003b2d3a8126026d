// einsum: operands are contracted from the left; each contraction is one matrix product of permuted
// views. A letter is kept as long as the result or a later operand has it.
#include <binade/core/autograd/op.h>
#include <binade/core/ops.h>
#include <binade/core/ops/detail/checks_internal.h>

#include <algorithm>
#include <string>

namespace binade {
namespace {

// A label is a letter of the equation, or a dimension of "...": kEllipsis + i is the i-th from the
// right.
using Labels = std::vector<int>;
constexpr int kEllipsis = 256;

constexpr Op kEinsum{"einsum", OpClass::contraction};

[[noreturn]] void bad(std::string_view equation, const std::string& why) {
  fail("einsum: got \"", equation, "\"", why);
}

bool has(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// The labels of one term. `ellipsis` is the number of dimensions that "..." stands for.
Labels parse_term(std::string_view equation, std::string_view term, int ellipsis, bool& dots) {
  Labels labels;
  dots = false;
  for (size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if (c == ' ') {
      continue;
    }
    if (term.substr(i, 3) == "...") {
      check(!dots, "einsum: got \"", equation, "\", expected \"...\" once per term");
      dots = true;
      for (int d = ellipsis - 1; d >= 0; --d) {
        labels.push_back(kEllipsis + d);
      }
      i += 2;
      continue;
    }
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) {
      bad(equation, text(", expected letters, not '", c, "'"));
    }
    if (has(labels, c)) {
      bad(equation, text(", expected the letter ", c, " at most once per operand and result"));
    }
    labels.push_back(c);
  }
  return labels;
}

struct Equation {
  std::vector<Labels> inputs;
  Labels output;
};

int letters_in(std::string_view term) {
  return static_cast<int>(
      std::count_if(term.begin(), term.end(), [](char c) { return c != ' ' && c != '.'; }));
}

std::vector<std::string_view> split_terms(std::string_view list) {
  std::vector<std::string_view> terms;
  for (size_t begin = 0;;) {
    const size_t end = list.find(',', begin);
    terms.push_back(list.substr(begin, end - begin));
    if (end == std::string_view::npos) {
      return terms;
    }
    begin = end + 1;
  }
}

// Without "->": the dimensions of "...", then the letters that occur once.
Labels implicit_output(const std::vector<Labels>& inputs, int most_dots) {
  Labels output, all;
  for (int d = most_dots - 1; d >= 0; --d) {
    output.push_back(kEllipsis + d);
  }
  for (const Labels& labels : inputs) {
    all.insert(all.end(), labels.begin(), labels.end());
  }
  std::sort(all.begin(), all.end());
  for (const int label : all) {
    if (label < kEllipsis && std::count(all.begin(), all.end(), label) == 1) {
      output.push_back(label);
    }
  }
  return output;
}

Equation parse(std::string_view equation, const std::vector<Tensor>& operands) {
  const size_t arrow = equation.find("->");
  const std::vector<std::string_view> terms = split_terms(equation.substr(0, arrow));
  check(terms.size() == operands.size(), "einsum: got \"", equation, "\" with ", terms.size(),
        " terms and ", operands.size(), " operands, expected as many");
  Equation parsed;
  int most_dots = 0;
  bool any_dots = false;
  for (size_t i = 0; i < terms.size(); ++i) {
    check(operands[i].defined(), "einsum: got an undefined tensor as operand ", i);
    const int rank = operands[i].dim(), ellipsis = rank - letters_in(terms[i]);
    bool dots = false;
    parsed.inputs.push_back(parse_term(equation, terms[i], std::max(ellipsis, 0), dots));
    check(dots ? ellipsis >= 0 : ellipsis == 0, "einsum: got \"", equation, "\" and operand ", i,
          " of shape ", operands[i].sizes(), ", expected a letter per dimension");
    most_dots = dots ? std::max(most_dots, ellipsis) : most_dots;
    any_dots |= dots;
  }
  if (arrow == std::string_view::npos) {
    parsed.output = implicit_output(parsed.inputs, most_dots);
    return parsed;
  }
  bool dots = false;
  parsed.output = parse_term(equation, equation.substr(arrow + 2), most_dots, dots);
  check(!dots || any_dots, "einsum: got \"", equation, "\", expected \"...\" in an operand too");
  for (const int label : parsed.output) {
    const bool known = std::any_of(parsed.inputs.begin(), parsed.inputs.end(),
                                   [&](const Labels& in) { return has(in, label); });
    if (!known) {
      bad(equation,
          text(", expected the result's letter ", static_cast<char>(label), " in an operand"));
    }
  }
  return parsed;
}

struct Term {
  Tensor tensor;
  Labels labels;

  int64_t size(int label) const {
    const auto at = std::find(labels.begin(), labels.end(), label) - labels.begin();
    return tensor.size(static_cast<int>(at));
  }
};

// Sums all labels that `kept` lacks.
Term reduced(Term term, const Labels& kept) {
  Dims dims;
  Labels rest;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (has(kept, term.labels[i])) {
      rest.push_back(term.labels[i]);
    } else {
      dims.push_back(static_cast<int64_t>(i));
    }
  }
  return dims.empty() ? term : Term{sum(term.tensor, dims), rest};
}

// The tensor with its dimensions in the order of `labels`; labels that it lacks get size 1.
Tensor in_order(const Term& term, const Labels& labels) {
  Dims order;
  for (const int label : labels) {
    const auto at = std::find(term.labels.begin(), term.labels.end(), label);
    if (at != term.labels.end()) {
      order.push_back(at - term.labels.begin());
    }
  }
  Tensor t = permute(term.tensor, order);
  for (size_t i = 0; i < labels.size(); ++i) {
    t = has(term.labels, labels[i]) ? t : unsqueeze(t, static_cast<int>(i));
  }
  return t;
}

Labels joined(std::initializer_list<const Labels*> parts) {
  Labels all;
  for (const Labels* part : parts) {
    all.insert(all.end(), part->begin(), part->end());
  }
  return all;
}

// The labels of two terms: in both and kept, in both and summed, or in one only.
struct Roles {
  Labels batch, contracted, left, right;

  Roles(const Term& a, const Term& b, const Labels& kept) {
    for (const int label : a.labels) {
      (!has(b.labels, label) ? left : has(kept, label) ? batch : contracted).push_back(label);
    }
    for (const int label : b.labels) {
      if (!has(a.labels, label)) {
        right.push_back(label);
      }
    }
  }
};

// Checks that the dimensions of `labels` have equal sizes in both terms; a size of 1 is expanded.
void match_sizes(std::string_view equation, Term& a, Term& b, const Labels& labels) {
  for (const int label : labels) {
    const int64_t left = a.size(label), right = b.size(label);
    if (left != right && left != 1 && right != 1) {
      const std::string name = label < kEllipsis ? std::string(1, static_cast<char>(label)) : "...";
      bad(equation,
          text(" with sizes ", left, " and ", right, " for ", name, ", expected one size"));
    }
    Term& narrow = left == 1 ? a : b;
    if (left != right) {
      Dims sizes = narrow.tensor.sizes();
      const auto at = std::find(narrow.labels.begin(), narrow.labels.end(), label);
      sizes[static_cast<int>(at - narrow.labels.begin())] = left == 1 ? right : left;
      narrow.tensor = expand(narrow.tensor, sizes);
    }
  }
}

int64_t count_of(const Term& term, const Labels& labels) {
  int64_t count = 1;
  for (const int label : labels) {
    count *= term.size(label);
  }
  return count;
}

// [batch .., left, contracted] [batch .., contracted, right] as one matrix product; without
// contracted labels as an elementwise product.
Term contracted(std::string_view equation, Term a, Term b, const Labels& kept) {
  {
    auto [left, right] = kEinsum.enter(a.tensor, b.tensor);
    check(left.dtype() == right.dtype(), "einsum: got dtypes ", left.dtype(), " and ",
          right.dtype(), ", expected one floating dtype; convert one with to()");
    const Tensor entered = right;  // left and right refer to the terms themselves
    a.tensor = Tensor(left);
    b.tensor = entered;
  }
  a = reduced(std::move(a), joined({&kept, &b.labels}));
  b = reduced(std::move(b), joined({&kept, &a.labels}));
  const Roles roles(a, b, kept);
  match_sizes(equation, a, b, roles.batch);
  match_sizes(equation, a, b, roles.contracted);
  const Labels labels = joined({&roles.batch, &roles.left, &roles.right});
  if (roles.contracted.empty() && !roles.batch.empty()) {
    return {mul(in_order(a, labels), in_order(b, labels)), labels};
  }
  Dims batch, sizes;
  for (const int label : roles.batch) {
    batch.push_back(a.size(label));
  }
  sizes = batch;
  for (const int label : roles.left) {
    sizes.push_back(a.size(label));
  }
  for (const int label : roles.right) {
    sizes.push_back(b.size(label));
  }
  const auto matrices = [&](const Term& term, const Labels& rows, const Labels& cols) {
    Dims shape = batch;
    shape.push_back(count_of(term, rows));
    shape.push_back(count_of(term, cols));
    return reshape(in_order(term, joined({&roles.batch, &rows, &cols})), shape);
  };
  const Tensor y =
      matmul(matrices(a, roles.left, roles.contracted), matrices(b, roles.contracted, roles.right));
  return {reshape(y, sizes), labels};
}

}  // namespace

Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands) {
  check(!operands.empty(), "einsum: got no operands, expected at least one");
  const Equation parsed = parse(equation, operands);
  for (const Tensor& t : operands) {
    check(is_floating(t.dtype()) && t.device() == operands[0].device(), "einsum: got ", t.dtype(),
          " on ", t.device(), ", expected floating operands on one device");
  }
  Term result{operands[0], parsed.inputs[0]};
  for (size_t i = 1; i < operands.size(); ++i) {
    Labels kept = parsed.output;
    for (size_t later = i + 1; later < operands.size(); ++later) {
      kept = joined({&kept, &parsed.inputs[later]});
    }
    result = contracted(equation, std::move(result), {operands[i], parsed.inputs[i]}, kept);
  }
  result = reduced(std::move(result), parsed.output);
  return in_order(result, parsed.output);
}

Tensor tensordot(const Tensor& a, const Tensor& b, const Dims& dims_a, const Dims& dims_b) {
  check_floating("tensordot", a);
  check_floating("tensordot", b);
  check_one_device("tensordot", {&a, &b});
  const bool cast = detail::thread_state.precision;  // a policy makes them one dtype
  check(cast || a.dtype() == b.dtype(), "tensordot: got dtypes ", a.dtype(), " and ", b.dtype(),
        ", expected one floating dtype; convert one with to()");
  check(dims_a.size() == dims_b.size(), "tensordot: got dims ", dims_a, " and ", dims_b,
        ", expected as many of a as of b");
  // Order of a: its free dimensions, then the summed ones. Order of b: the summed dimensions, then
  // its free ones.
  Dims order_a, order_b, sizes;
  int64_t summed = 1, rows = 1, columns = 1;
  bool used_a[kMaxDims] = {}, used_b[kMaxDims] = {};
  for (int i = 0; i < dims_a.size(); ++i) {
    const int da = wrap_dim("tensordot", dims_a[i], a.dim()),
              db = wrap_dim("tensordot", dims_b[i], b.dim());
    check(
        a.dim() > 0 && b.dim() > 0 && !used_a[da] && !used_b[db] && a.sizes()[da] == b.sizes()[db],
        "tensordot: got shapes ", a.sizes(), " and ", b.sizes(), " with dims ", dims_a, " and ",
        dims_b, ", expected different dims of equal sizes");
    used_a[da] = used_b[db] = true;
    summed *= a.sizes()[da];
  }
  for (int d = 0; d < a.dim(); ++d) {
    if (!used_a[d]) {
      order_a.push_back(d);
      sizes.push_back(a.sizes()[d]);
      rows *= a.sizes()[d];
    }
  }
  for (int i = 0; i < dims_a.size(); ++i) {
    order_a.push_back(wrap_dim("tensordot", dims_a[i], a.dim()));
    order_b.push_back(wrap_dim("tensordot", dims_b[i], b.dim()));
  }
  for (int d = 0; d < b.dim(); ++d) {
    if (!used_b[d]) {
      order_b.push_back(d);
      sizes.push_back(b.sizes()[d]);
      columns *= b.sizes()[d];
    }
  }
  return reshape(matmul(reshape(permute(a, order_a), {rows, summed}),
                        reshape(permute(b, order_b), {summed, columns})),
                 sizes);
}

Tensor tensordot(const Tensor& a, const Tensor& b, int dims) {
  check(a.defined() && b.defined(),
        "tensordot: got an undefined tensor, expected one with a value; assign it first");
  check(dims >= 0 && dims <= a.dim() && dims <= b.dim(), "tensordot: got ", dims,
        " dims for shapes ", a.sizes(), " and ", b.sizes(), ", expected 0 to ",
        std::min(a.dim(), b.dim()));
  Dims last, first;
  for (int i = 0; i < dims; ++i) {
    last.push_back(a.dim() - dims + i);
    first.push_back(i);
  }
  return tensordot(a, b, last, first);
}

}  // namespace binade
