// Rows of the normalisation ops.
#include <tests/op_table/op_table.h>

#include <binade/core/tensor/create.h>

#include <cmath>

namespace binade::op_table {
namespace {

constexpr double kMomentum = 0.25, kEps = 1e-3;

struct Statistics {
  double mean = 0, variance = 0;  // biased
  int64_t count = 0;
};

std::vector<Statistics> statistics_of(const Array& x) {
  std::vector<Statistics> stats(static_cast<size_t>(x.sizes[1]));
  for (bool second_pass : {false, true}) {
    for_each(x.sizes, [&](const Dims& index) {
      Statistics& s = stats[static_cast<size_t>(index[1])];
      if (second_pass) {
        s.variance += std::pow(x.at(index) - s.mean, 2) / double(s.count);
      } else {
        s.mean += x.at(index);
        ++s.count;
      }
    });
    for (Statistics& s : stats) {
      s.mean = second_pass ? s.mean : s.mean / double(s.count);
    }
  }
  return stats;
}

// Inputs: x, running mean, running variance, weight and bias if affine, and a residual. Outputs: y,
// and in training the new running statistics.
Arrays batch_norm_of(const Arrays& in, bool training, bool affine, bool residual) {
  const Array& x = in[0];
  std::vector<Statistics> stats = statistics_of(x);
  Array running_mean = in[1], running_var = in[2];
  for (size_t c = 0; c < stats.size(); ++c) {
    Statistics& s = stats[c];
    if (training) {
      const double n = double(s.count), unbiased = s.variance * n / (n - 1);
      running_mean.values[c] += kMomentum * (s.mean - running_mean.values[c]);
      running_var.values[c] += kMomentum * (unbiased - running_var.values[c]);
    } else {
      s = {running_mean.values[c], running_var.values[c], s.count};
    }
  }
  const Array y = generate(x.sizes, [&](const Dims& index) {
    const Statistics& s = stats[static_cast<size_t>(index[1])];
    const double normal = (x.at(index) - s.mean) / std::sqrt(s.variance + kEps);
    const double y = affine ? normal * in[3].at({index[1]}) + in[4].at({index[1]}) : normal;
    return residual ? y + in.back().at(index) : y;
  });
  return training ? Arrays{y, running_mean, running_var} : Arrays{y};
}

Tensor copy_of(const Tensor& t) {
  Tensor copy = empty(t.sizes(), t.dtype(), t.device());
  copy.copy_(t.detach());
  return copy;
}

Shapes batch_norm_shapes(const Dims& x, bool affine, bool residual) {
  const Dims c{x[1]};
  Shapes shapes{x, c, c};
  if (affine) {
    shapes.insert(shapes.end(), {c, c});
  }
  if (residual) {
    shapes.push_back(x);
  }
  return shapes;
}

OpRow batch_norm_row(bool training, bool affine, bool residual = false) {
  OpRow row;
  row.name = "batch_norm";
  row.attributes = text(training ? "training" : "evaluation", affine ? " affine" : "",
                        residual ? " residual" : "");
  for (const Dims& x : {Dims{5, 4}, {2, 3, 4, 2}, {3, 2, 5}, {2, 2, 1, 3, 2}, {6, 1, 1, 1}}) {
    row.shapes.push_back(batch_norm_shapes(x, affine, residual));
  }
  row.large = batch_norm_shapes({8, 19, 23, 21}, affine, residual);
  row.timed = batch_norm_shapes({32, 32, 32, 32}, affine, residual);
  const Domain statistic{.low = 0.5, .high = 2, .statistic = true};
  const Domain running{.low = 0.5, .high = 2, .statistic = true, .fixed = true};
  row.domains = {{.low = -1, .high = 3}, running, running};
  if (affine) {
    row.domains.insert(row.domains.end(), {statistic, statistic});
  }
  if (residual) {
    row.domains.push_back({.low = -2, .high = 2});
  }
  row.outputs_with_gradient = 1;
  row.function = [=](const Tensors& in) {
    const Tensor running_mean = copy_of(in[1]), running_var = copy_of(in[2]);
    const BatchNormOptions options{.training = training,
                                   .momentum = kMomentum,
                                   .eps = kEps,
                                   .residual = residual ? in.back() : Tensor()};
    const Tensor y = batch_norm(in[0], affine ? in[3] : Tensor(), affine ? in[4] : Tensor(),
                                running_mean, running_var, options);
    return training ? Tensors{y, running_mean, running_var} : Tensors{y};
  };
  row.reference = [=](const Arrays& in) { return batch_norm_of(in, training, affine, residual); };
  row.accuracy = Accuracy::sums;
  const Tensor none;
  row.errors = {
      {"weight size that differs",
       [=] {
         batch_norm(ones({4, 6}), ones({5}), ones({6}), zeros({6}), ones({6}));
       }},
      {"statistics size that differs",
       [=] {
         batch_norm(ones({4, 6}), ones({6}), ones({6}), zeros({6}), ones({4}));
       }},
      {"one value per channel",
       [=] {
         batch_norm(ones({1, 6}), none, none, none, none);
       }},
      {"input of one dimension", [=] { batch_norm(ones({6}), none, none, none, none); }},
      {"one of two statistics",
       [=] {
         batch_norm(ones({4, 6}), none, none, zeros({6}), none);
       }},
      {"evaluation without statistics",
       [=] {
         batch_norm(ones({4, 6}), none, none, none, none, {.training = false});
       }},
      {"residual of another size",
       [=] {
         batch_norm(ones({4, 6}), none, none, none, none, {.residual = ones({4, 5})});
       }},
      {"integer input",
       [=] {
         batch_norm(zeros({4, 6}, DType::i64), none, none, none, none);
       }},
      {"undefined input", [=] { batch_norm(none, none, none, none, none); }},
  };
  return row;
}

// The norm of order p of the vectors along dimension 1 of f(index), with size 1 there.
Array norms(const Dims& sizes, double p, const std::function<double(const Dims&)>& f) {
  Dims kept = sizes;
  kept[1] = 1;
  return generate(kept, [&](Dims at) {
    double sum = 0;
    for (at[1] = 0; at[1] < sizes[1]; ++at[1]) {
      sum += std::pow(std::fabs(f(at)), p);
    }
    return std::pow(sum, 1 / p);
  });
}

OpRow normalize_row(double p) {
  OpRow row;
  row.name = "normalize";
  row.attributes = text("p ", p);
  row.shapes = {{{3, 5}}, {{2, 4, 3}}, {{2, 0}}, {{3, 1}}};
  row.domains = {{.avoid = {0}}};
  row.function = [=](const Tensors& x) { return Tensors{normalize(x[0], p)}; };
  row.reference = [=](const Arrays& x) {
    const Array norm = norms(x[0].sizes, p, [&](const Dims& at) { return x[0].at(at); });
    return Arrays{generate(x[0].sizes, [&](const Dims& at) { return x[0].at(at) / norm.at(at); })};
  };
  row.accuracy = Accuracy::sums;
  row.large = {{130, 301}};
  row.timed = {{512, 512}};
  row.errors = {{"dim out of range", [] { normalize(ones({3})); }},
                {"eps of 0", [] { normalize(ones({3}), 2, 0, 0); }},
                {"integers",
                 [] {
                   normalize(zeros({3, 3}, DType::i64));
                 }},
                {"undefined input", [] { normalize(Tensor()); }}};
  return row;
}

OpRow pairwise_distance_row(double p) {
  OpRow row;
  row.name = "pairwise_distance";
  row.attributes = text("p ", p);
  row.shapes = {{{3, 5}, {3, 5}}, {{3, 1}, {2, 4}}, {{2, 0}, {2, 0}}};
  row.shapes[1] = {{3, 4}, {1, 4}};
  row.domains = {{.low = 1, .high = 3}, {.low = -3, .high = 0}};
  row.function = [=](const Tensors& x) { return Tensors{pairwise_distance(x[0], x[1], p, 0.25)}; };
  row.reference = [=](const Arrays& x) {
    const Dims sizes = broadcast(x[0].sizes, x[1].sizes);
    Array y = norms(sizes, p, [&](const Dims& at) { return x[0].at(at) - x[1].at(at) + 0.25; });
    y.sizes = {sizes[0]};
    return Arrays{y};
  };
  row.accuracy = Accuracy::sums;
  row.many_zeros = true;
  row.large = {{130, 301}, {130, 301}};
  row.timed = {{512, 512}, {512, 512}};
  row.errors = {{"shapes that do not broadcast",
                 [] {
                   pairwise_distance(ones({3, 4}), ones({3, 5}));
                 }},
                {"scalars", [] { pairwise_distance(ones({}), ones({})); }},
                {"undefined input", [] { pairwise_distance(Tensor(), ones({3})); }}};
  return row;
}

OpRow cdist_row(double p) {
  OpRow row;
  row.name = "cdist";
  row.attributes = text("p ", p);
  row.shapes = {{{3, 5}, {4, 5}},
                {{2, 3, 4}, {1, 2, 4}},
                {{2, 3}, {2, 2, 3}},
                {{0, 3}, {2, 3}},
                {{2, 0}, {3, 0}}};
  row.domains = {{.low = 1, .high = 3}, {.low = -3, .high = 0}};
  row.function = [=](const Tensors& x) { return Tensors{cdist(x[0], x[1], p)}; };
  row.reference = [=](const Arrays& x) {
    const auto batch = [](const Array& a) {
      return Dims(std::span(a.sizes.begin(), static_cast<size_t>(a.dim() - 2)));
    };
    Dims sizes = broadcast(batch(x[0]), batch(x[1]));
    const int rank = sizes.size();
    sizes.push_back(x[0].sizes[x[0].dim() - 2]);
    sizes.push_back(x[1].sizes[x[1].dim() - 2]);
    return Arrays{generate(sizes, [&](const Dims& at) {
      Dims i = at, j = at;  // [.., row, k] of each
      j[rank] = at[rank + 1];
      double sum = 0;
      for (int64_t k = 0; k < x[0].sizes.back(); ++k) {
        i[rank + 1] = j[rank + 1] = k;
        const double distance = std::fabs(x[0].at(i) - x[1].at(j));
        sum = std::isinf(p) ? std::max(sum, distance) : sum + std::pow(distance, p);
      }
      return std::isinf(p) ? sum : std::pow(sum, 1 / p);
    })};
  };
  row.accuracy = Accuracy::sums;
  row.many_zeros = true;
  row.large = {{60, 31}, {59, 31}};
  row.timed = {{1024, 64}, {1024, 64}};
  // In 16 bits many differences are equal, and share the gradient of p = inf: the parity cases have
  // it.
  row.differentiable = !std::isinf(p);
  row.errors = {{"rows of two lengths",
                 [] {
                   cdist(ones({3, 4}), ones({3, 5}));
                 }},
                {"vectors", [] { cdist(ones({3}), ones({3})); }},
                {"batches that do not broadcast",
                 [] {
                   cdist(ones({2, 3, 4}), ones({3, 3, 4}));
                 }},
                {"negative p",
                 [] {
                   cdist(ones({3, 4}), ones({3, 4}), -1);
                 }},
                {"undefined input", [] {
                   cdist(Tensor(), ones({3, 3}));
                 }}};
  return row;
}

}  // namespace

std::vector<OpRow> norm_rows() {
  return {normalize_row(2),
          cdist_row(2),
          cdist_row(1),
          cdist_row(3),
          cdist_row(INFINITY),
          normalize_row(3),
          pairwise_distance_row(2),
          pairwise_distance_row(1),
          batch_norm_row(true, true),
          batch_norm_row(true, false),
          batch_norm_row(false, true),
          batch_norm_row(false, false),
          batch_norm_row(true, true, true),
          batch_norm_row(false, true, true)};
}

}  // namespace binade::op_table
