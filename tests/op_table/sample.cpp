#include <tests/kernels/support/test_device.h>
#include <tests/op_table/sample.h>

#include <binade/core/tensor/create.h>
#include <binade/kernels/base/philox.h>
#include <binade/kernels/conv/conv2d_provider.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <numeric>

namespace binade::op_table {

const std::vector<OpRow>& op_table() {
  static const std::vector<OpRow> table = [] {
    std::vector<OpRow> rows;
    for (auto family :
         {pointwise_rows,   activation_rows, selection_rows,  reduce_rows,         contraction_rows,
          pool_rows,        norm_rows,       loss_rows,       shape_rows,          join_rows,
          statistics_rows,  sort_rows,       search_rows,     covariance_rows,     window_rows,
          margin_loss_rows, rearrange_rows,  index_rows,      embedding_bag_rows,  interpolate_rows,
          grid_sample_rows, conv_rows,       group_norm_rows, pointwise_loss_rows, class_loss_rows,
          matmul_rows,      attention_rows,  rnn_rows,        advanced_index_rows, arrange_rows,
          random_rows,      format_rows,     linalg_rows}) {
      for (OpRow& row : family()) {
        rows.push_back(std::move(row));
      }
    }
    return rows;
  }();
  return table;
}

const Domain& domain_of(const OpRow& row, size_t input) {
  return row.domains[std::min(input, row.domains.size() - 1)];
}

const char* to_string(Layout layout) {
  constexpr const char* kName[kLayoutCount] = {"contiguous",   "transposed",     "sliced",
                                               "offset",       "expanded_first", "expanded_last",
                                               "channels_last"};
  return kName[static_cast<int>(layout)];
}

bool applies(Layout layout, const Dims& sizes) {
  const int rank = sizes.size();
  switch (layout) {
    case Layout::contiguous: return false;
    case Layout::transposed: return rank >= 2;
    case Layout::sliced:
    case Layout::offset: return rank >= 1;
    case Layout::expanded_first: return rank >= 1 && sizes[0] > 1;
    case Layout::expanded_last: return rank >= 1 && sizes[rank - 1] > 1;
    case Layout::channels_last: return rank >= 3;
  }
  return false;
}

Dims base_sizes(Layout layout, const Dims& sizes) {
  Dims base = sizes;
  const int last = sizes.size() - 1;
  if (!applies(layout, sizes)) {
    return base;
  }
  switch (layout) {
    case Layout::contiguous: break;
    case Layout::transposed: std::swap(base[0], base[last]); break;
    case Layout::sliced: base[last] = 2 * base[last] + 1; break;
    case Layout::offset: base[0] += 3; break;
    case Layout::expanded_first: base[0] = 1; break;
    case Layout::expanded_last: base[last] = 1; break;
    case Layout::channels_last:
      for (int i = 1; i < last; ++i) {
        base[i] = sizes[i + 1];
      }
      base[last] = sizes[1];
      break;
  }
  return base;
}

Tensor present(Layout layout, const Tensor& base, const Dims& sizes) {
  const int last = sizes.size() - 1;
  if (!applies(layout, sizes)) {
    return base;
  }
  switch (layout) {
    case Layout::contiguous: break;
    case Layout::transposed: return transpose(base, 0, last);
    case Layout::sliced: return slice(base, last, 1, 2 * sizes[last] + 1, 2);
    case Layout::offset: return slice(base, 0, 3, sizes[0] + 3);
    case Layout::expanded_first:
    case Layout::expanded_last: return expand(base, sizes);
    case Layout::channels_last: {
      Dims order{0, last};
      for (int i = 1; i < last; ++i) {
        order.push_back(i);
      }
      return permute(base, order);
    }
  }
  return base;
}

Array present(Layout layout, const Array& base, const Dims& sizes) {
  const int last = sizes.size() - 1;
  if (!applies(layout, sizes)) {
    return base;
  }
  return generate(sizes, [&](const Dims& index) {
    Dims at = index;
    switch (layout) {
      case Layout::transposed: std::swap(at[0], at[last]); break;
      case Layout::sliced: at[last] = 2 * at[last] + 1; break;
      case Layout::offset: at[0] += 3; break;
      case Layout::channels_last:
        for (int i = 1; i < last; ++i) {
          at[i] = index[i + 1];
        }
        at[last] = index[1];
        break;
      default: break;
    }
    return base.at(at);
  });
}

namespace {

Array draw_distinct(const Dims& sizes, philox::Stream& random) {
  std::vector<int64_t> order(static_cast<size_t>(element_count(sizes)));
  std::iota(order.begin(), order.end(), -static_cast<int64_t>(order.size() / 2));
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random.next_below(static_cast<uint32_t>(i))]);
  }
  Array x{sizes, {}};
  for (int64_t rank : order) {
    x.values.push_back(static_cast<double>(rank) / 32);
  }
  return x;
}

double draw_one(const Domain& domain, philox::Stream& random) {
  while (true) {
    double x = domain.low + (domain.high - domain.low) * random.next_uniform();
    if (domain.whole) {
      x = std::round(x) + domain.shift;
    }
    const bool near = std::any_of(domain.avoid.begin(), domain.avoid.end(),
                                  [&](double point) { return std::fabs(x - point) < domain.gap; });
    if (!near) {
      return x;
    }
  }
}

Array draw(const Domain& domain, const Dims& sizes, philox::Stream& random, DType dtype,
           bool integers) {
  if (domain.divisor && !is_floating(dtype)) {
    const bool negative = dtype == DType::i64 || dtype == DType::i32;
    return generate(
        sizes, [&](const Dims&) { return negative && random.next_below(2) == 0 ? -1.0 : 1.0; });
  }
  if (domain.classes > 0 || dtype == DType::u8 || dtype == DType::boolean) {
    const auto bound = static_cast<uint32_t>(std::max<int64_t>(domain.classes, 2));
    return generate(sizes, [&](const Dims&) { return double(random.next_below(bound)); });
  }
  if (integers || !is_floating(dtype)) {
    return generate(sizes, [&](const Dims&) { return double(random.next_below(3)) - 1; });
  }
  if (domain.distinct) {
    return draw_distinct(sizes, random);
  }
  return generate(sizes, [&](const Dims&) { return draw_one(domain, random); });
}

}  // namespace

Sample make_sample(const OpRow& row, const Shapes& shapes, const std::vector<Layout>& layouts,
                   DType dtype, uint64_t seed, bool integers) {
  Sample sample;
  sample.layouts = layouts;
  sample.seed = seed;
  std::string names;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Domain& domain = domain_of(row, i);
    philox::Stream random(seed, i);
    const DType wanted = domain.mask          ? DType::boolean
                         : domain.classes > 0 ? DType::i64
                         : domain.statistic   ? compute_dtype(dtype)
                                              : dtype;
    const Array base =
        round_to(wanted, draw(domain, base_sizes(layouts[i], shapes[i]), random, wanted, integers));
    sample.bases.push_back(to_tensor(base, wanted));
    sample.views.push_back(present(layouts[i], sample.bases.back(), shapes[i]));
    sample.values.push_back(present(layouts[i], base, shapes[i]));
    names += text(i == 0 ? "" : ",", to_string(layouts[i]));
  }
  sample.label = text("op=", row.name, row.attributes.empty() ? "" : "(", row.attributes,
                      row.attributes.empty() ? "" : ")", " shapes=", to_string(shapes),
                      " layouts=", names, " dtype=", dtype, " seed=", seed);
  return sample;
}

Sample converted(const OpRow& row, const Sample& sample, DType dtype, Device device) {
  Sample result = sample;
  for (size_t i = 0; i < sample.bases.size(); ++i) {
    DType wanted = sample.bases[i].dtype();
    if (is_floating(wanted)) {
      wanted = domain_of(row, i).statistic ? compute_dtype(dtype) : dtype;
    }
    result.bases[i] = sample.bases[i].to(device).to(wanted);
    result.views[i] = present(sample.layouts[i], result.bases[i], sample.views[i].sizes());
  }
  return result;
}
Sample converted(const OpRow& row, const Sample& sample, DType dtype) {
  return converted(row, sample, dtype, kernels::test_device());
}

Array to_array(const Tensor& t) {
  Array x{t.sizes(), {}};
  const Tensor host = t.to(Device{});
  for (int64_t i = 0; i < host.numel(); ++i) {
    x.values.push_back(host.at(i));
  }
  return x;
}

Tensor to_tensor(const Array& x, DType dtype) {
  return from_values(x.values, x.sizes, dtype, kernels::test_device());
}

Tensors random_upstream(const Tensors& outputs, uint64_t seed, bool integers) {
  Tensors upstream;
  philox::Stream random(seed, 0x757073);
  for (const Tensor& y : outputs) {
    const Array g = generate(y.sizes(), [&](const Dims&) {
      return integers ? double(random.next_below(3)) - 1 : 3.0 * random.next_uniform() - 1.5;
    });
    upstream.push_back(to_tensor(round_to(y.dtype(), g), y.dtype()));
  }
  return upstream;
}

AlgorithmGuard::AlgorithmGuard(const OpRow& row)
    : mode_(row.fast ? kernels::MathMode::fast : kernels::MathMode::precise),
      before_(kernels::conv2d_provider()) {
  if (row.algorithm) {
    kernels::set_conv2d_provider(row.algorithm);
  }
}

AlgorithmGuard::~AlgorithmGuard() { kernels::set_conv2d_provider(before_); }

Result run_with_gradient(const OpRow& row, const Sample& sample, const Tensors& upstream) {
  Tensors leaves, views;
  for (size_t i = 0; i < sample.bases.size(); ++i) {
    Tensor leaf = sample.bases[i].detach();
    if (is_floating(leaf.dtype()) && !domain_of(row, i).fixed) {
      leaf.require_grad();
    }
    views.push_back(present(sample.layouts[i], leaf, sample.views[i].sizes()));
    leaves.push_back(std::move(leaf));
  }
  Result result;
  result.outputs = row.function(views);
  std::vector<Seed> seeds;
  for (size_t i = 0; i < std::min(result.outputs.size(), row.outputs_with_gradient); ++i) {
    if (result.outputs[i].requires_grad()) {
      seeds.push_back({result.outputs[i], upstream[i]});
    }
  }
  backward(seeds);
  for (const Tensor& leaf : leaves) {
    result.gradients.push_back(leaf.requires_grad() ? leaf.grad() : Tensor());
  }
  return result;
}

std::vector<size_t> row_indices(const std::function<bool(const OpRow&)>& wanted) {
  std::vector<size_t> indices;
  for (size_t i = 0; i < op_table().size(); ++i) {
    if (wanted(op_table()[i])) {
      indices.push_back(i);
    }
  }
  return indices;
}

std::string row_name(size_t index) {
  const OpRow& row = op_table()[index];
  std::string name = row.name + (row.number ? "_number" : "") + "_" + row.attributes;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) {
      c = '_';
    }
  }
  return text(name, "_", index);
}

std::vector<std::vector<Layout>> layout_choices(const Shapes& shapes, bool expansions) {
  const auto nth = [](size_t n) { return static_cast<Layout>(n % kLayoutCount); };
  std::vector<std::vector<Layout>> wanted;
  for (size_t n = 0; n < kLayoutCount; ++n) {
    wanted.emplace_back(shapes.size(), nth(n));
  }
  for (size_t step : {1, 3}) {
    wanted.emplace_back();
    for (size_t i = 0; i < shapes.size(); ++i) {
      wanted.back().push_back(nth(2 + i * step));
    }
  }
  // Layouts that do not change these sizes would repeat a sample.
  std::vector<std::vector<Layout>> choices;
  for (std::vector<Layout> layouts : wanted) {
    for (size_t i = 0; i < shapes.size(); ++i) {
      const bool expanded =
          layouts[i] == Layout::expanded_first || layouts[i] == Layout::expanded_last;
      const bool wanted_here = applies(layouts[i], shapes[i]) && (expansions || !expanded);
      layouts[i] = wanted_here ? layouts[i] : Layout::contiguous;
    }
    if (std::find(choices.begin(), choices.end(), layouts) == choices.end()) {
      choices.push_back(layouts);
    }
  }
  return choices;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined()) {
    return false;
  }
  if (!a.defined()) {
    return true;
  }
  if (a.dtype() != b.dtype() || !(a.sizes() == b.sizes())) {
    return false;
  }
  const Tensor x = contiguous(a.detach().to(Device{})), y = contiguous(b.detach().to(Device{}));
  const size_t bytes = static_cast<size_t>(x.numel()) * size_of(x.dtype());
  return bytes == 0 || std::memcmp(x.view().data, y.view().data, bytes) == 0;
}

std::string to_string(const Shapes& shapes) {
  std::string out;
  for (const Dims& sizes : shapes) {
    out += (out.empty() ? "" : ",") + binade::to_string(sizes);
  }
  return out;
}

}  // namespace binade::op_table
