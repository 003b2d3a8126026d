#include <binade/core/tensor/create.h>
#include <binade/optim/layerwise.h>

#include <algorithm>

namespace binade::optim {
namespace {

Tensor table(const std::vector<int64_t>& rows, int64_t columns, Device device) {
  const Tensor host = empty({static_cast<int64_t>(rows.size()) / columns, columns}, DType::i64);
  std::copy(rows.begin(), rows.end(), host.data<int64_t>());
  return host.to(device);
}

// Rows [first, last) of a matrix, or elements of a vector.
View rows_of(const Tensor& t, int64_t first, int64_t last) {
  View view = t;
  const int64_t columns = view.dim() == 2 ? view.sizes[1] : 1;
  view.data += first * columns * static_cast<int64_t>(size_of(view.dtype));
  view.sizes[0] = last - first;
  view.numel = (last - first) * columns;
  return view;
}

}  // namespace

LayerwiseOptimizer::LayerwiseOptimizer(const std::vector<ParamGroup>& groups,
                                       const std::vector<GroupSettings>& settings,
                                       bool has_momentum, std::vector<std::string> moment_names)
    : Optimizer(groups, settings, has_momentum, std::move(moment_names)) {
  check(!is_sharded(),
        "optimizer: got sharded parameters for LAMB or LARS, whose steps need the "
        "norms of whole parameters; use AdamW, Adam, SGD, RMSprop or Adagrad, or do not shard");
  for (size_t group = 0; group < group_count(); ++group) {
    tables_.push_back(make_tables(group));
  }
}

LayerwiseOptimizer::Tables LayerwiseOptimizer::make_tables(size_t group) const {
  Tables tables;
  std::vector<int64_t> chunks, items;
  int64_t count = 0;
  for (const Extent& extent : extents(group)) {
    const auto item = static_cast<int64_t>(tables.origin.size());
    tables.origin.push_back(extent.offset);
    tables.first_chunk.push_back(count);
    tables.names.push_back(extent.name);
    for (int64_t at = 0; at < extent.numel; at += kernels::kTrustChunk, ++count) {
      const int64_t size = std::min(kernels::kTrustChunk, extent.numel - at);
      chunks.insert(chunks.end(), {extent.offset + at, size, item});
    }
    items.insert(items.end(), {tables.first_chunk.back(), count});
  }
  tables.first_chunk.push_back(count);
  tables.chunks = table(chunks, 3, device());
  tables.items = table(items, 2, device());
  tables.ratios = ones({static_cast<int64_t>(tables.origin.size())}, DType::f64, device());
  return tables;
}

kernels::TrustTable LayerwiseOptimizer::table_of(const Range& range) const {
  const Tables& tables = tables_[range.group];
  const auto first = static_cast<int64_t>(range.first), last = static_cast<int64_t>(range.last);
  const int64_t first_chunk = tables.first_chunk[range.first];
  return {.chunks = rows_of(tables.chunks, first_chunk, tables.first_chunk[range.last]),
          .items = rows_of(tables.items, first, last),
          .origin = tables.origin[range.first],
          .first_chunk = first_chunk,
          .first_item = first,
          .ratios = rows_of(tables.ratios, first, last)};
}

NamedScalars LayerwiseOptimizer::trust_ratios() const {
  NamedScalars ratios;
  for (const Tables& tables : tables_) {
    const Tensor host = tables.ratios.to(Device{});
    for (size_t i = 0; i < tables.names.size(); ++i) {
      ratios[tables.names[i]] = host.data<double>()[i];
    }
  }
  return ratios;
}

}  // namespace binade::optim
