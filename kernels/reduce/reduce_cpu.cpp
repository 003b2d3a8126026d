// CPU reductions: kept and reduced dimensions are coalesced apart, outputs are taken in groups of
// up to 256 along the innermost kept dimension, and where there are few groups the reduced range is
// cut into chunks whose number depends on the shape only. The bodies are in reduce_isa.cpp.
#include <binade/kernels/base/ceil_div.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/workspace.h>
#include <binade/kernels/copy/copy.h>
#include <binade/kernels/copy/copy_isa_internal.h>
#include <binade/kernels/reduce/reduce_internal.h>
#include <binade/kernels/reduce/reduce_isa_internal.h>

#include <cmath>

namespace binade::kernels::cpu {
namespace {

constexpr int64_t kColumns = ReduceTask::kColumns;
constexpr int64_t kBlock = 1024;  // elements of one step along a row
// With fewer groups of outputs than this the reduced range is split into chunks.
constexpr int64_t kEnoughUnits = 16;
constexpr int64_t kMostChunks = 64;

// Some dimensions of x and y, merged, smallest stride of x first. Strides in bytes.
struct Nest {
  int dims = 0;
  int64_t numel = 1;
  int64_t size[kMaxDims];
  int64_t x_stride[kMaxDims], y_stride[kMaxDims], aux_stride[kMaxDims];

  void insert(int64_t n, int64_t x, int64_t y, int64_t aux) {
    numel *= n;
    if (n == 1) {
      return;
    }
    int at = dims++;
    for (; at > 0 && (x < 0 ? -x : x) < x_stride[at - 1]; --at) {
      size[at] = size[at - 1];
      x_stride[at] = x_stride[at - 1];
      y_stride[at] = y_stride[at - 1];
      aux_stride[at] = aux_stride[at - 1];
    }
    size[at] = n;
    x_stride[at] = x;
    y_stride[at] = y;
    aux_stride[at] = aux;
  }

  // Merges adjacent dimensions that form one range; keeps at least one dimension.
  void merge(int64_t x_width, int64_t y_width) {
    int last = -1;
    for (int d = 0; d < dims; ++d) {
      if (last >= 0 && x_stride[d] == x_stride[last] * size[last] &&
          y_stride[d] == y_stride[last] * size[last] &&
          aux_stride[d] == aux_stride[last] * size[last]) {
        size[last] *= size[d];
        continue;
      }
      ++last;
      size[last] = size[d];
      x_stride[last] = x_stride[d];
      y_stride[last] = y_stride[d];
      aux_stride[last] = aux_stride[d];
    }
    dims = last + 1;
    if (dims == 0) {
      dims = 1;
      size[0] = 1;
      x_stride[0] = x_width;
      y_stride[0] = y_width;
      aux_stride[0] = 0;
    }
  }
};

struct Plan {
  ReduceRule rule;
  Nest kept, reduced;
  bool across;
  int64_t groups_per_row, groups;  // groups of outputs
  int64_t rows, chunks;            // steps of the reduced sequence, and its chunks
};

Plan make_plan(const ReduceForward& a) {
  Plan p;
  p.rule = reduce_rule(a, a.x.numel / a.y.numel);
  const auto x_width = static_cast<int64_t>(size_of(a.x.dtype));
  const auto y_width = static_cast<int64_t>(size_of(a.y.dtype));
  const auto aux_width = static_cast<int64_t>(size_of(a.aux.dtype));
  for (int d = a.x.dim() - 1; d >= 0; --d) {
    const bool reduced = is_reduced(a, d);
    (reduced ? p.reduced : p.kept)
        .insert(a.x.size(d), a.x.strides[d] * x_width, reduced ? 0 : a.y.strides[d] * y_width,
                reduced || !a.aux ? 0 : a.aux.strides[d] * aux_width);
  }
  p.kept.merge(x_width, y_width);
  p.reduced.merge(x_width, 0);
  // Reduces along the inner dimension if that is a reduced one, unless it is short and columns are
  // many.
  constexpr int64_t kShort = 16;
  p.across = p.kept.numel > 1 && (p.kept.x_stride[0] < p.reduced.x_stride[0]
                                      ? p.kept.size[0] >= 4 || p.reduced.size[0] < kShort
                                      : p.reduced.size[0] < kShort && p.kept.size[0] >= kShort);
  p.groups_per_row = ceil_div(p.kept.size[0], kColumns);
  p.groups = p.kept.numel / p.kept.size[0] * p.groups_per_row;
  const int64_t columns = p.kept.size[0] < kColumns ? p.kept.size[0] : kColumns;
  const int64_t step = p.across ? 1 : (p.reduced.size[0] < kBlock ? p.reduced.size[0] : kBlock);
  p.rows = p.across ? p.reduced.numel
                    : p.reduced.numel / p.reduced.size[0] * ceil_div(p.reduced.size[0], kBlock);
  p.chunks = 1;
  if (p.groups < kEnoughUnits) {
    const int64_t useful = p.rows * step * columns / kSerialElements;
    p.chunks = useful < 1 ? 1 : useful < kMostChunks ? useful : kMostChunks;
    p.chunks = p.chunks <= p.rows ? p.chunks : p.rows;
  }
  return p;
}

struct Group {
  int64_t columns, x_offset, y_offset, aux_offset;
};

Group group_at(const Nest& kept, int64_t groups_per_row, int64_t index) {
  const int64_t first = index % groups_per_row * kColumns;
  Group g = {kept.size[0] - first < kColumns ? kept.size[0] - first : kColumns,
             first * kept.x_stride[0], first * kept.y_stride[0], first * kept.aux_stride[0]};
  int64_t row = index / groups_per_row;
  for (int d = 1; d < kept.dims; ++d) {
    g.x_offset += row % kept.size[d] * kept.x_stride[d];
    g.y_offset += row % kept.size[d] * kept.y_stride[d];
    g.aux_offset += row % kept.size[d] * kept.aux_stride[d];
    row /= kept.size[d];
  }
  return g;
}

ReduceTask make_task(const Plan& p, const View& x, const Group& group) {
  ReduceTask task;
  task.x = x.data + group.x_offset;
  task.columns = group.columns;
  task.column_stride = p.kept.x_stride[0];
  task.dims = p.reduced.dims;
  for (int d = 0; d < task.dims; ++d) {
    task.size[d] = p.reduced.size[d];
    task.stride[d] = p.reduced.x_stride[d];
  }
  task.across = p.across;
  task.term = p.rule.reading.term;
  return task;
}

// The type of the numbers in a state, and its bytes.
DType accumulator(const ReduceForward& a, const Plan& p) {
  return is_scalar(p.rule.reducer) ? accumulator_dtype(p.rule.reducer, a.x.dtype)
                                   : state_dtype(p.rule.reducer, a.x.dtype);
}
int64_t state_bytes(const ReduceForward& a, const Plan& p) {
  return static_cast<int64_t>(size_of(accumulator(a, p))) * (is_scalar(p.rule.reducer) ? 1 : 3);
}

// Rounds values of the accumulator type and stores them to outputs.
void store_values(DType from, void* values, int64_t n, DType to, std::byte* y, int64_t y_stride) {
  convert_tile_best(from, to,
                    StridedTile{{y, static_cast<std::byte*>(values)},
                                {y_stride, static_cast<int64_t>(size_of(from))},
                                {},
                                1,
                                n});
}

template <class C>
void divide(void* values, int64_t n, double count) {
  C* y = static_cast<C*>(values);
  for (int64_t i = 0; i < n; ++i) {
    y[i] /= static_cast<C>(count);
  }
}

// Computes y and aux from the final state of an output.
template <class C>
void finish_state(const ReduceRule& rule, const ReduceState<C>& s, C& y, C& aux) {
  const Reading& reading = rule.reading;
  switch (rule.reducer) {
    case Reducer::power_sum: y = reading.root ? std::sqrt(s.first) : s.first; return;
    case Reducer::deviations:
      y = s.second / static_cast<C>(reading.divisor);
      y = reading.root ? std::sqrt(y) : y;
      aux = s.first;
      return;
    case Reducer::log_sum_exp:
      y = std::isinf(s.first) ? s.first : s.first + std::log(s.second);
      return;
    case Reducer::zeros:
      y = s.second > 0 ? s.first * 0 : s.first;
      aux = s.second == 1 ? s.first : 0;
      return;
    default: y = reading.term == Term::negative ? -s.first : s.first; aux = s.second;
  }
}

template <class C>
void store_states(const ReduceForward& a, const Plan& p, const Group& group, const void* partial) {
  const auto* states = static_cast<const ReduceState<C>*>(partial);
  C y[kColumns], aux[kColumns] = {};
  for (int64_t i = 0; i < group.columns; ++i) {
    finish_state(p.rule, states[i], y[i], aux[i]);
  }
  store_values(dtype_of<C>, y, group.columns, a.y.dtype, a.y.data + group.y_offset,
               p.kept.y_stride[0]);
  if (a.aux) {
    store_values(dtype_of<C>, aux, group.columns, a.aux.dtype, a.aux.data + group.aux_offset,
                 p.kept.aux_stride[0]);
  }
}

// Finishes a group whose state is complete: rounds, stores.
void store(const ReduceForward& a, const Plan& p, const Group& group, void* partial) {
  const DType from = accumulator(a, p);
  if (!is_scalar(p.rule.reducer)) {
    return from == DType::f64 ? store_states<double>(a, p, group, partial)
                              : store_states<float>(a, p, group, partial);
  }
  if (const double divisor = p.rule.reading.divisor) {
    from == DType::f64 ? divide<double>(partial, group.columns, divisor)
                       : divide<float>(partial, group.columns, divisor);
  }
  store_values(from, partial, group.columns, a.y.dtype, a.y.data + group.y_offset,
               p.kept.y_stride[0]);
}

void run_task(const ReduceForward& a, const Plan& p, const ReduceTask& task) {
  if (is_scalar(p.rule.reducer)) {
    reduce_rows_best(p.rule.reducer, a.x.dtype, task);
  } else {
    reduce_states_best(p.rule.reducer, a.x.dtype, task);
  }
}

constexpr int64_t kPartialBytes = kColumns * static_cast<int64_t>(sizeof(ReduceState<double>));

void reduce_whole(const ReduceForward& a, const Plan& p) {
  const int64_t per_group = a.x.numel / p.groups + 1;
  parallel_for(p.groups, kSerialElements / per_group + 1, [&](int64_t begin, int64_t end) {
    alignas(64) std::byte partial[kPartialBytes];
    for (int64_t i = begin; i < end; ++i) {
      const Group group = group_at(p.kept, p.groups_per_row, i);
      ReduceTask task = make_task(p, a.x, group);
      task.begin = 0;
      task.end = p.rows;
      task.partial = partial;
      run_task(a, p, task);
      store(a, p, group, partial);
    }
  });
}

void reduce_chunked(const ReduceForward& a, const Plan& p) {
  const Workspace workspace(static_cast<size_t>(p.groups * p.chunks * kPartialBytes));
  std::byte* partials = workspace.as<std::byte>();
  const int64_t width = state_bytes(a, p);
  parallel_for(p.groups * p.chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      // Neighbouring tasks read the same rows of x.
      const int64_t index = i % p.groups, chunk = i / p.groups;
      const Group group = group_at(p.kept, p.groups_per_row, index);
      ReduceTask task = make_task(p, a.x, group);
      task.begin = p.rows * chunk / p.chunks;
      task.end = p.rows * (chunk + 1) / p.chunks;
      task.partial = partials + index * p.chunks * kPartialBytes + chunk * group.columns * width;
      run_task(a, p, task);
    }
  });
  for (int64_t i = 0; i < p.groups; ++i) {
    const Group group = group_at(p.kept, p.groups_per_row, i);
    std::byte* partial = partials + i * p.chunks * kPartialBytes;
    if (is_scalar(p.rule.reducer)) {
      reduce_partials_best(p.rule.reducer, a.x.dtype, partial, p.chunks, group.columns);
    } else {
      reduce_state_partials_best(p.rule.reducer, a.x.dtype, partial, p.chunks, group.columns);
    }
    store(a, p, group, partial);
  }
}

}  // namespace

void reduce_forward(const ReduceForward& a) {
  check_arguments(a);
  if (a.y.numel == 0) {
    return;
  }
  if (a.x.numel == 0) {
    const double nothing = reduction_of_nothing(a.op);
    fill({.y = a.y, .value = nothing});
    if (a.aux) {
      fill({.y = a.aux, .value = a.op == Reduce::prod ? 0 : nothing});
    }
    return;
  }
  const Plan p = make_plan(a);
  p.chunks > 1 ? reduce_chunked(a, p) : reduce_whole(a, p);
}

void reduce_backward(const ReduceBackward& a) {
  check_arguments(a);
  const StridedLoop loop("reduce backward", {&a.dx, &a.x, &a.a, &a.b});
  loop.run([&](const StridedTile& tile) { reduce_backward_tile_best(a.op, a.x.dtype, tile); });
}

}  // namespace binade::kernels::cpu
