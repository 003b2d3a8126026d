// Compares LAMB and LARS with f64 trajectories written from the formulas, over several parameters
// in one range.
#include <binade/kernels/optimizer/optimizer_trust.h>
#include <binade/kernels/optimizer/step_rule.h>
#include <tests/kernels/support/array_values.h>

namespace binade::kernels::optimizer_trust_test {
namespace {

constexpr int kSteps = 2;
constexpr double kMultiplier = 0.25;

// Parameters in a segment of memory; the range starts with the second one.
struct Piece {
  int64_t begin, count;
};
constexpr Piece kPieces[] = {{0, 50}, {128, 9001}, {9216, 1}, {9344, 0}, {9345, 300}, {9645, 77}};
constexpr int64_t kOrigin = 128, kCount = 9722 - kOrigin;
constexpr int64_t kFirstItem = 1, kItems = 5, kFirstChunk = 1, kChunks = 5;
constexpr int kZeroPiece = 4;  // its values start at 0

struct LAMB {
  double lr = 0.02, beta1 = 0.9, beta2 = 0.99, eps = 1e-6, weight_decay = 0.1;
};

struct LARS {
  double lr = 0.5, momentum = 0.9, weight_decay = 1e-2, trust_coefficient = 0.02, eps = 1e-9;
};

bool in_a_piece(int64_t i) {
  for (const Piece& piece : kPieces) {
    if (i + kOrigin >= piece.begin && i + kOrigin < piece.begin + piece.count) {
      return true;
    }
  }
  return false;
}

Values start_values() {
  Values values = random_values(kCount, 1);
  for (int64_t i = 0; i < kCount; ++i) {
    const Piece& zeros = kPieces[kZeroPiece];
    const bool zero = i + kOrigin >= zeros.begin && i + kOrigin < zeros.begin + zeros.count;
    values[static_cast<size_t>(i)] *= zero ? 0 : 1;
  }
  return values;
}

Values gradient(int step) {
  return random_values(kCount, static_cast<uint32_t>(100 + step), 0.1, 0.5);
}

// Parameters and state in the form that the kernels take.
struct State {
  StridedArray param, master, first, second, ratios, chunks, items;
  bool with_master;

  State(DType dtype, bool master_wanted)
      : param(make_array(dtype, {kCount}, start_values())),
        master(make_array(compute_dtype(dtype), {kCount}, values_of(param))),
        first(make_array(compute_dtype(dtype), {kCount}, Values(kCount))),
        second(first),
        ratios(DType::f64, {kItems}),
        chunks(DType::i64, {kChunks, 3}),
        items(DType::i64, {kItems, 2}),
        with_master(master_wanted) {
    int64_t chunk = kFirstChunk, *row = chunks.host_as<int64_t>();
    for (int64_t item = kFirstItem; item < kFirstItem + kItems; ++item) {
      const Piece& piece = kPieces[item];
      items.host_as<int64_t>()[2 * (item - kFirstItem)] = chunk;
      for (int64_t at = 0; at < piece.count; at += kTrustChunk, ++chunk) {
        *row++ = piece.begin + at;
        *row++ = std::min(kTrustChunk, piece.count - at);
        *row++ = item;
      }
      items.host_as<int64_t>()[2 * (item - kFirstItem) + 1] = chunk;
    }
    EXPECT_EQ(chunk, kFirstChunk + kChunks);
  }
  View master_view() { return with_master ? master.view() : kNoView; }
  TrustTable table() {
    return {.chunks = chunks.view(),
            .items = items.view(),
            .origin = kOrigin,
            .first_chunk = kFirstChunk,
            .first_item = kFirstItem,
            .ratios = ratios.view()};
  }
};

void step_kernel(State& s, StridedArray& g, const LAMB& o, int step,
                 const View& step_scalars = kNoView) {
  lamb_step({.param = s.param.view(),
             .master = s.master_view(),
             .grad = g.view(),
             .exp_avg = s.first.view(),
             .exp_avg_sq = s.second.view(),
             .table = s.table(),
             .lr = o.lr,
             .beta1 = o.beta1,
             .beta2 = o.beta2,
             .eps = o.eps,
             .weight_decay = o.weight_decay,
             .step = step,
             .grad_multiplier = kMultiplier,
             .step_scalars = step_scalars});
}

void step_kernel(State& s, StridedArray& g, const LARS& o, int,
                 const View& step_scalars = kNoView) {
  lars_step({.param = s.param.view(),
             .master = s.master_view(),
             .grad = g.view(),
             .momentum_buffer = s.first.view(),
             .table = s.table(),
             .lr = o.lr,
             .momentum = o.momentum,
             .weight_decay = o.weight_decay,
             .trust_coefficient = o.trust_coefficient,
             .eps = o.eps,
             .grad_multiplier = kMultiplier,
             .step_scalars = step_scalars});
}

struct Reference {
  Values p, first, second;
};

double norm(const Values& x) {
  double sum = 0;
  for (double value : x) {
    sum += value * value;
  }
  return std::sqrt(sum);
}

double step_reference(Reference& s, const Values& g, const LAMB& o, int step) {
  Values r(s.p.size());
  for (size_t i = 0; i < r.size(); ++i) {
    s.first[i] = o.beta1 * s.first[i] + (1 - o.beta1) * g[i];
    s.second[i] = o.beta2 * s.second[i] + (1 - o.beta2) * g[i] * g[i];
    r[i] = s.first[i] / (1 - std::pow(o.beta1, step)) /
               (std::sqrt(s.second[i] / (1 - std::pow(o.beta2, step))) + o.eps) +
           o.weight_decay * s.p[i];
  }
  const double p = norm(s.p), length = norm(r), ratio = p > 0 && length > 0 ? p / length : 1;
  for (size_t i = 0; i < r.size(); ++i) {
    s.p[i] -= o.lr * ratio * r[i];
  }
  return ratio;
}

double step_reference(Reference& s, const Values& g, const LARS& o, int) {
  const double p = norm(s.p), length = norm(g);
  const double ratio =
      p > 0 && length > 0 ? o.trust_coefficient * p / (length + o.weight_decay * p + o.eps) : 1;
  for (size_t i = 0; i < g.size(); ++i) {
    s.first[i] = o.momentum * s.first[i] + o.lr * ratio * (g[i] + o.weight_decay * s.p[i]);
    s.p[i] -= s.first[i];
  }
  return ratio;
}

// The elements of a piece, which begins at `begin` in the range.
Values part_of(const Values& all, const Piece& piece) {
  const auto begin = all.begin() + (piece.begin - kOrigin);
  return {begin, begin + piece.count};
}

template <class Options>
void run_reference(const Options& options, DType dtype, Values& p, Values& first, Values& ratios) {
  p = values_of(State(dtype, false).param);
  first = Values(kCount);
  Values second(kCount);
  for (int step = 1; step <= kSteps; ++step) {
    Values gradients = values_of(make_array(dtype, {kCount}, gradient(step)));
    for (double& value : gradients) {
      value *= kMultiplier;
    }
    ratios.clear();
    for (int64_t item = kFirstItem; item < kFirstItem + kItems; ++item) {
      const Piece& piece = kPieces[item];
      Reference s{part_of(p, piece), part_of(first, piece), part_of(second, piece)};
      ratios.push_back(step_reference(s, part_of(gradients, piece), options, step));
      const auto put = [&](const Values& from, Values& to) {
        std::copy(from.begin(), from.end(), to.begin() + (piece.begin - kOrigin));
      };
      put(s.p, p);
      put(s.first, first);
      put(s.second, second);
    }
  }
}

template <class Options>
void check_trajectory(const Options& options) {
  for (DType dtype : floating_dtypes()) {
    Values p, first, ratios;
    run_reference(options, dtype, p, first, ratios);
    for (bool with_master : {false, true}) {
      if (with_master && !is_half(dtype)) {
        continue;
      }
      State state(dtype, with_master);
      for (int step = 1; step <= kSteps; ++step) {
        StridedArray g = make_array(dtype, {kCount}, gradient(step));
        step_kernel(state, g, options, step);
      }
      const bool rounds_often = is_half(dtype) && !with_master;
      const double units = rounds_often ? 8 * kSteps * epsilon(dtype) / epsilon(DType::f32) : 8;
      expect_close(state.param, dtype, p, units, with_master ? "param, with master" : "param");
      if (!rounds_often) {
        expect_close(state.first, compute_dtype(dtype), first, 64, "state");
        expect_close(state.ratios, compute_dtype(dtype), ratios, 64, "ratios");
      }
      if (with_master) {
        expect_close(state.master, DType::f32, p, 8, "master");
      }
      const Values before = values_of(State(dtype, false).param), now = values_of(state.param);
      for (int64_t i = 0; i < kCount; ++i) {
        if (!in_a_piece(i)) {
          ASSERT_EQ(now[static_cast<size_t>(i)], before[static_cast<size_t>(i)]) << "gap " << i;
        }
      }
    }
  }
}

TEST(OptimizerTrust, LambFollowsItsFormula) {
  check_trajectory(LAMB{});
  check_trajectory(LAMB{.beta1 = 0.5, .eps = 1e-3, .weight_decay = 0});
}

TEST(OptimizerTrust, LarsFollowsItsFormula) {
  check_trajectory(LARS{});
  check_trajectory(LARS{.momentum = 0, .weight_decay = 0.1, .trust_coefficient = 0.1});
}

TEST(OptimizerTrust, ReadTheirNumbersFromWords) {
  const auto run = [](const View& step_scalars, const auto& options) {
    State state(DType::bf16, true);
    StridedArray g = make_array(DType::bf16, {kCount}, gradient(1));
    step_kernel(state, g, options, step_scalars ? 9 : 3, step_scalars);
    std::vector<std::byte> all;
    for (const StridedArray* array : {&state.param, &state.master, &state.first, &state.second}) {
      append(all, *array);
    }
    return all;
  };
  for (double apply : {0.0, 1.0}) {
    StridedArray step_scalars(DType::f64, {kScalarsOf<RangeScalars>});
    auto& w = *step_scalars.host_as<RangeScalars>();
    w = range_scalars(
        {.multiplier = kMultiplier, .lr = 0.02, .momentum = 0.9, .update = 3, .beta2 = 0.99});
    w.apply = apply;
    EXPECT_EQ(run(step_scalars.view(), LAMB{.lr = 7, .beta1 = 0.1}) == run(kNoView, LAMB{}),
              apply == 1);
    step_scalars.host_as<RangeScalars>()->lr = 0.5;
    EXPECT_EQ(run(step_scalars.view(), LARS{.lr = 7, .momentum = 0.1}) == run(kNoView, LARS{}),
              apply == 1);
  }
}

TEST(OptimizerTrust, SameBitsForAnyThreadCount) {
  expect_thread_invariant([] {
    State state(DType::f32, false);
    StridedArray g = make_array(DType::f32, {kCount}, gradient(1));
    step_kernel(state, g, LAMB{}, 1);
    step_kernel(state, g, LARS{}, 1);
    std::vector<std::byte> all;
    for (const StridedArray* array : {&state.param, &state.first, &state.second, &state.ratios}) {
      append(all, *array);
    }
    return all;
  });
}

TEST(OptimizerTrust, ErrorsNameTheProblem) {
  State state(DType::f32, false);
  StridedArray g = make_array(DType::f32, {kCount}, gradient(1));
  EXPECT_EQ(error_of([&] { step_kernel(state, g, LAMB{}, 0); }),
            "lamb_step: got step 0, expected 1 or more");
  EXPECT_EQ(error_of([&] { step_kernel(state, g, LARS{.trust_coefficient = 0}, 1); }),
            "lars_step: got trust_coefficient 0, expected a positive number");
  StridedArray other(DType::f64, {2});
  TrustTable table = state.table();
  table.ratios = other.view();
  EXPECT_EQ(error_of([&] {
              lars_step({state.param.view(), kNoView, g.view(), state.first.view(), table, 0.1, 0,
                         0, 0.1, 0, 1.0});
            }),
            "lars_step: got ratios f64 [2], expected a contiguous f64 [5]");
  table.chunks = other.view();
  EXPECT_EQ(error_of([&] {
              lars_step({state.param.view(), kNoView, g.view(), state.first.view(), table, 0.1, 0,
                         0, 0.1, 0, 1.0});
            }),
            "lars_step: got chunks f64 [2], expected a contiguous i64 [rows, 3]");
}

TEST(OptimizerTrust, PassesOnNarrowerIsas) { EXPECT_TRUE(passes_on_narrower_isas()); }

}  // namespace
}  // namespace binade::kernels::optimizer_trust_test
