// Rows of the norms over trailing dimensions and over groups of channels.
#include <binade/core/ops/layer_norm.h>
#include <tests/op_table/op_table.h>

#include <binade/core/tensor/create.h>

#include <cmath>
#include <map>

namespace binade::op_table {
namespace {

constexpr double kEps = 1e-3;

// x normalised over the elements that have the same key. Without a mean: root mean squares.
Array normalized(const Array& x, bool with_mean, const std::function<int64_t(const Dims&)>& key) {
  struct Group {
    double count = 0, mean = 0, variance = 0;
  };
  std::map<int64_t, Group> groups;
  for_each(x.sizes, [&](const Dims& at) {
    Group& group = groups[key(at)];
    group.mean += with_mean ? x.at(at) : 0;
    ++group.count;
  });
  for (auto& [_, group] : groups) {
    group.mean /= group.count;
  }
  for_each(x.sizes, [&](const Dims& at) {
    Group& group = groups[key(at)];
    group.variance += std::pow(x.at(at) - group.mean, 2) / group.count;
  });
  return generate(x.sizes, [&](const Dims& at) {
    const Group& group = groups[key(at)];
    return (x.at(at) - group.mean) / std::sqrt(group.variance + kEps);
  });
}

// The part of an index that belongs to `trailing` last dimensions, or all of it.
Dims last_of(const Dims& at, int trailing) {
  trailing = std::min(trailing, at.size());
  Dims last = Dims::of(trailing);
  for (int i = 0; i < trailing; ++i) {
    last[i] = at[at.size() - trailing + i];
  }
  return last;
}

// Normalises over the last dimensions, as many as the weight has. Inputs: x, weight, bias.
Array row_norm_of(const Arrays& in, int trailing, bool with_mean) {
  const Array& x = in[0];
  const Array unit = normalized(x, with_mean, [&](const Dims& at) {
    int64_t row = 0;
    for (int i = 0; i < at.size() - trailing; ++i) {
      row = row * x.sizes[i] + at[i];
    }
    return row;
  });
  return generate(x.sizes, [&](const Dims& at) {
    const Dims last = last_of(at, trailing);
    return unit.at(at) * (in.size() > 1 ? in[1].at(last) : 1) +
           (in.size() > 2 ? in[2].at(last) : 0);
  });
}

Array group_norm_of(const Arrays& in, int64_t groups) {
  const Array& x = in[0];
  const int64_t per_group = x.sizes[1] / groups;
  const Array unit =
      normalized(x, true, [&](const Dims& at) { return at[0] * groups + at[1] / per_group; });
  return generate(x.sizes, [&](const Dims& at) {
    return unit.at(at) * (in.size() > 1 ? in[1].at({at[1]}) : 1) +
           (in.size() > 2 ? in[2].at({at[1]}) : 0);
  });
}

Tensor at_or_none(const Tensors& in, size_t i) { return i < in.size() ? in[i] : Tensor(); }

OpRow norm_row(const std::string& name, const std::string& attributes) {
  OpRow row;
  row.name = name;
  row.attributes = attributes;
  const Domain statistic{.low = 0.5, .high = 2, .statistic = true};
  row.domains = {{.low = -1, .high = 3}, statistic, statistic};
  row.accuracy = Accuracy::sums;
  return row;
}

// x and `parameters` tensors of these sizes.
Shapes with_parameters(const Dims& x, int parameters, const Dims& sizes) {
  Shapes shapes{x};
  shapes.insert(shapes.end(), static_cast<size_t>(parameters), sizes);
  return shapes;
}

OpRow row_norm_row(bool with_mean, int parameters, int trailing) {
  OpRow row = norm_row(with_mean ? "layer_norm" : "rms_norm",
                       text(trailing, " dims, ", parameters, " parameters"));
  const std::vector<Dims> shapes = trailing == 1
                                       ? std::vector<Dims>{{4, 9}, {2, 1, 33}, {7}, {0, 5}, {3, 4}}
                                       : std::vector<Dims>{{3, 4, 5}, {2, 6}, {2, 2, 3, 1}};
  for (const Dims& x : shapes) {
    row.shapes.push_back(with_parameters(x, parameters, last_of(x, trailing)));
  }
  const Dims large = trailing == 1 ? Dims{600, 129} : Dims{600, 3, 43};
  row.large = with_parameters(large, parameters, last_of(large, trailing));
  const Dims timed = trailing == 1 ? Dims{4096, 256} : Dims{4096, 4, 64};
  row.timed = with_parameters(timed, parameters, last_of(timed, trailing));
  row.function = [=](const Tensors& in) {
    const Dims sizes = last_of(in[0].sizes(), trailing);
    return Tensors{with_mean ? layer_norm(in[0], sizes, at_or_none(in, 1), at_or_none(in, 2), kEps)
                             : rms_norm(in[0], sizes, at_or_none(in, 1), kEps)};
  };
  row.reference = [=](const Arrays& in) { return Arrays{row_norm_of(in, trailing, with_mean)}; };
  return row;
}

OpRow group_row(int64_t groups, int parameters) {
  OpRow row = norm_row("group_norm", text(groups, " groups, ", parameters, " parameters"));
  for (const Dims& x :
       {Dims{2, 6, 3, 2}, {2, 12, 3}, {2, 24}, {0, 6, 4}, {1, 6, 1, 3, 2}, {1, 6, 5, 4}}) {
    row.shapes.push_back(with_parameters(x, parameters, {x[1]}));
  }
  row.large = with_parameters({4, 66, 23, 21}, parameters, {66});
  row.timed = with_parameters({16, 66, 32, 32}, parameters, {66});
  row.function = [=](const Tensors& in) {
    return Tensors{group_norm(in[0], groups, at_or_none(in, 1), at_or_none(in, 2), kEps)};
  };
  row.reference = [=](const Arrays& in) { return Arrays{group_norm_of(in, groups)}; };
  return row;
}

OpRow instance_row(int parameters) {
  OpRow row = norm_row("instance_norm", text(parameters, " parameters"));
  for (const Dims& x : {Dims{2, 3, 3, 2}, {2, 3, 7}, {0, 6, 4}, {1, 2, 5, 4}}) {
    row.shapes.push_back(with_parameters(x, parameters, {x[1]}));
  }
  row.large = with_parameters({4, 33, 23, 21}, parameters, {33});
  row.timed = with_parameters({32, 33, 32, 32}, parameters, {33});
  row.function = [=](const Tensors& in) {
    return Tensors{instance_norm(in[0], at_or_none(in, 1), at_or_none(in, 2), kEps)};
  };
  row.reference = [](const Arrays& in) { return Arrays{group_norm_of(in, in[0].sizes[1])}; };
  return row;
}

std::vector<ErrorCase> layer_norm_errors() {
  return {
      {"normalized_shape that differs",
       [] {
         layer_norm(ones({4, 6}), {5});
       }},
      {"normalized_shape longer than x",
       [] {
         layer_norm(ones({6}), {4, 6});
       }},
      {"no normalized_shape",
       [] {
         layer_norm(ones({4, 6}), {});
       }},
      {"weight shape that differs",
       [] {
         layer_norm(ones({4, 6}), {6}, ones({4}), ones({6}));
       }},
      {"bias shape that differs",
       [] {
         layer_norm(ones({4, 6}), {6}, ones({6}), ones({1, 6}));
       }},
      {"integer input",
       [] {
         layer_norm(zeros({4, 6}, DType::i64), {6});
       }},
      {"undefined input", [] { layer_norm(Tensor(), {6}); }},
  };
}

std::vector<ErrorCase> rms_norm_errors() {
  return {
      {"normalized_shape that differs",
       [] {
         rms_norm(ones({4, 6}), {5});
       }},
      {"weight shape that differs",
       [] {
         rms_norm(ones({4, 6}), {6}, ones({4}));
       }},
      {"undefined input", [] { rms_norm(Tensor(), {6}); }},
  };
}

std::vector<ErrorCase> group_norm_errors() {
  return {
      {"groups that do not divide the channels",
       [] {
         group_norm(ones({4, 6}), 4);
       }},
      {"no pixels",
       [] {
         group_norm(ones({2, 4, 0, 3}), 2);
       }},
      {"no groups",
       [] {
         group_norm(ones({4, 6}), 0);
       }},
      {"weight size that differs",
       [] {
         group_norm(ones({4, 6}), 2, ones({4}));
       }},
      {"bias size that differs",
       [] {
         group_norm(ones({4, 6}), 2, ones({6}), ones({2}));
       }},
      {"input of one dimension", [] { group_norm(ones({6}), 2); }},
      {"integer input",
       [] {
         group_norm(zeros({4, 6}, DType::i64), 2);
       }},
      {"undefined input", [] { group_norm(Tensor(), 1); }},
  };
}

std::vector<ErrorCase> instance_norm_errors() {
  return {
      {"one value per instance",
       [] {
         instance_norm(ones({2, 6, 1}));
       }},
      {"no value per instance",
       [] {
         instance_norm(ones({2, 6, 0}));
       }},
      {"input of two dimensions",
       [] {
         instance_norm(ones({2, 6}));
       }},
      {"weight size that differs",
       [] {
         instance_norm(ones({2, 6, 3}), ones({2}));
       }},
      {"undefined input", [] { instance_norm(Tensor()); }},
  };
}

}  // namespace

std::vector<OpRow> group_norm_rows() {
  std::vector<OpRow> rows = {row_norm_row(true, 2, 1),  row_norm_row(true, 1, 2),
                             row_norm_row(true, 0, 1),  row_norm_row(false, 1, 1),
                             row_norm_row(false, 0, 2), group_row(3, 2),
                             group_row(1, 0),           group_row(6, 1),
                             instance_row(2),           instance_row(0)};
  rows[0].errors = layer_norm_errors();
  rows[3].errors = rms_norm_errors();
  rows[5].errors = group_norm_errors();
  rows[8].errors = instance_norm_errors();
  return rows;
}

}  // namespace binade::op_table
