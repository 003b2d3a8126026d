// Each rank computes the moments of its part. Every rank then combines the moments of all ranks, in
// the order of the ranks, and normalises by them as by running statistics. Backward adds up the two
// sums per channel that the gradient through mean and variance needs:
//   u = (x - mean) rstd, over the m elements of a channel on all ranks
//   dx = w rstd (dy - sum(dy) / m - u sum(dy u) / m)
// dw and db are sums over this rank only: like all gradients of parameters they are averaged later.
#include <binade/core/ops/detail/batch_norm_ranks_internal.h>
#include <binade/core/tensor/create.h>
#include <binade/core/tensor/rank_group.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/norm/batch_norm.h>

#include <cmath>
#include <vector>

namespace binade {
namespace {

struct BatchMoments {
  std::vector<double> mean, variance;  // biased, per channel
  double count = 0;                    // elements per channel
};

Tensor on_device(const std::vector<double>& values, const Tensor& like) {
  return from_values(std::span<const double>(values), {static_cast<int64_t>(values.size())},
                     like.dtype(), like.device());
}

// Combines the moments of parts into the moments of the whole (T. Chan, G. Golub, R. LeVeque,
// "Updating formulae and a pairwise algorithm for computing sample variances", 1982).
void merge(BatchMoments& all, double count, const double* mean, const double* variance) {
  const double total = all.count + count;
  for (size_t c = 0; total > 0 && c < all.mean.size(); ++c) {
    const double delta = mean[c] - all.mean[c];
    all.mean[c] += delta * count / total;
    all.variance[c] = (all.variance[c] * all.count + variance[c] * count +
                       delta * delta * all.count * count / total) /
                      total;
  }
  all.count = total;
}

// The moments of this rank's part, per channel. The mean is mean + mean_rest: the differences of
// the means of ranks may be far smaller than the rounding of a large mean.
struct OwnMoments {
  Tensor mean, mean_rest, variance;
  int64_t count;
};

BatchMoments moments_of_ranks(RankGroup& group, const OwnMoments& part) {
  const int64_t channels = part.mean.numel(), row = 2 * channels + 1;
  const Tensor rows = zeros({group.size() * row}, DType::f64);
  double* own = rows.data<double>() + group.rank() * row;
  const Tensor m = part.mean.to(Device{}), rest = part.mean_rest.to(Device{}),
               v = part.variance.to(Device{});
  own[0] = static_cast<double>(part.count);
  for (int64_t c = 0; c < channels; ++c) {
    own[1 + c] = m.at(c) + rest.at(c);
    own[1 + channels + c] = v.at(c);
  }
  std::vector<int64_t> bounds;
  for (int rank = 0; rank <= group.size(); ++rank) {
    bounds.push_back(rank * row);
  }
  group.gather_ranges(rows, bounds);
  BatchMoments all{.mean = std::vector<double>(static_cast<size_t>(channels)),
                   .variance = std::vector<double>(static_cast<size_t>(channels))};
  for (int rank = 0; rank < group.size(); ++rank) {
    const double* moments = rows.data<double>() + rank * row;
    merge(all, moments[0], moments + 1, moments + 1 + channels);
  }
  return all;
}

// The values that the forward saved, and the number of elements of a channel on all ranks.
struct SavedBatch {
  const Tensor &x, &w, &mean, &variance;
  double eps, count;
};

// Adds the part of dx that comes through mean and variance: -w rstd (sum(dy) + u sum(dy u)) / m,
// which is a batch norm of x with other weights. sums: [2 C], first sum(dy u), then sum(dy).
void add_through_moments(const SavedBatch& saved, const Tensor& sums, const Tensor& dx) {
  const auto& [x, w, mean, variance, eps, count] = saved;
  const auto channels = static_cast<size_t>(mean.numel());
  const Tensor host_w = w.defined() ? w.to(Device{}) : Tensor(), v = variance.to(Device{});
  std::vector<double> weight(channels), bias(channels);
  for (size_t c = 0; c < channels; ++c) {
    const auto i = static_cast<int64_t>(c);
    const double scale = -(host_w.defined() ? host_w.at(i) : 1) / std::sqrt(v.at(i) + eps) / count;
    weight[c] = scale * sums.at(i);
    bias[c] = scale * sums.at(i + mean.numel());
  }
  const Tensor through = empty_like(x), weights = on_device(weight, mean),
               biases = on_device(bias, mean);
  kernels::batch_norm_inference({.x = x,
                                 .weight = weights,
                                 .bias = biases,
                                 .running_mean = mean,
                                 .running_var = variance,
                                 .y = through,
                                 .eps = eps});
  kernels::add_into({.x = through, .y = dx});
}

Tensor both(const Tensor& dw, const Tensor& db) {
  Tensor sums = empty({2 * dw.numel()}, DType::f64);
  const Tensor w = dw.to(Device{}), b = db.to(Device{});
  for (int64_t c = 0; c < dw.numel(); ++c) {
    sums.data<double>()[c] = w.at(c);
    sums.data<double>()[c + dw.numel()] = b.at(c);
  }
  return sums;
}

}  // namespace

void update_running_statistics(const BatchNormInputs& in, const Tensor& mean,
                               const Tensor& variance, int64_t count) {
  kernels::batch_norm_running({.mean = mean,
                               .variance = variance,
                               .running_mean = in.running_mean,
                               .running_var = in.running_var,
                               .momentum = in.options.momentum,
                               .count = count});
  in.running_mean.bump_version();
  in.running_var.bump_version();
}

Tensor batch_norm_of_ranks(const BatchNormInputs& in) {
  const auto& [op, x, w, b, running_mean, running_var, options] = in;
  check(x.numel() > 0, "batch_norm: got an empty x of shape ", x.sizes(), " on rank ",
        options.group->rank(), ", expected samples on every rank");
  const DType compute = compute_dtype(x.dtype());
  const double eps = options.eps;
  Tensor y = empty_like(x);
  Tensor mean = empty({x.size(1)}, compute, x.device()), variance = empty_like(mean);
  const Tensor mean_rest = empty_like(mean);
  kernels::batch_norm_forward({.x = x,
                               .weight = kNoView,
                               .bias = kNoView,
                               .y = y,
                               .mean = mean,
                               .rstd = empty_like(mean),
                               .eps = eps,
                               .variance = variance,
                               .mean_rest = mean_rest});
  RankGroup* group = options.group;
  const BatchMoments all =
      moments_of_ranks(*group, {mean, mean_rest, variance, x.numel() / x.size(1)});
  mean = on_device(all.mean, mean);
  variance = on_device(all.variance, mean);
  kernels::batch_norm_inference({.x = x,
                                 .weight = w,
                                 .bias = b,
                                 .running_mean = mean,
                                 .running_var = variance,
                                 .y = y,
                                 .eps = eps});
  if (running_mean.defined() && !detail::thread_state.recomputing) {
    update_running_statistics(in, mean, variance, static_cast<int64_t>(all.count));
  }
  return op.record({x, w, b}, y, save(x, w, mean, variance),
                   [group, eps, count = all.count](const Tensor& dy, Needs needs, const Tensor& x,
                                                   const Tensor& w, const Tensor& mean,
                                                   const Tensor& variance) -> Grads {
                     check(!grad_enabled(),
                           "backward: double backward of batch_norm over several ranks is not "
                           "implemented, expected one rank; leave out create_graph");
                     Tensor dx = needs.out_like(0, x), dw = needs.out(1), db = needs.out(2);
                     const Tensor own_dw = dw.defined() ? dw : empty_like(mean),
                                  own_db = db.defined() ? db : empty_like(mean);
                     kernels::batch_norm_inference_backward({.x = x,
                                                             .dy = dy,
                                                             .weight = w,
                                                             .running_mean = mean,
                                                             .running_var = variance,
                                                             .dx = dx,
                                                             .dweight = own_dw,
                                                             .dbias = own_db,
                                                             .eps = eps});
                     const Tensor sums = both(own_dw, own_db);
                     group->sum(sums);
                     if (dx.defined()) {
                       add_through_moments({x, w, mean, variance, eps, count}, sums, dx);
                     }
                     return {dx, dw, db};
                   });
}

}  // namespace binade
