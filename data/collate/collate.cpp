// stack() and pad().
#include <binade/core/tensor/create.h>
#include <binade/data/collate/collate_internal.h>
#include <binade/data/fields_internal.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace binade::data {
namespace {

// The field of every sample, row-major on the CPU, of one dtype and number of dimensions.
std::vector<Tensor> rows_of(std::span<const Sample> samples, const std::string& name) {
  std::vector<Tensor> rows;
  rows.reserve(samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    const Tensor* field = find_field(samples[i].fields, name);
    if (field == nullptr) {
      throw SampleError(
          i, text("has no field '", name, "', expected one of: ", names_of(samples[i].fields)));
    }
    if (!field->device().is_cpu()) {
      throw SampleError(i, text("has its field '", name, "' on ", field->device(),
                                ", expected the CPU: the loader copies batches to its device"));
    }
    const Tensor& first = rows.empty() ? *field : rows.front();
    if (field->dtype() != first.dtype() || field->dim() != first.dim()) {
      throw SampleError(i, text("has '", name, "' as ", field->dtype(), " ", field->sizes(),
                                ", the batch began with ", first.dtype(), " ", first.sizes()));
    }
    rows.push_back(plain(*field));
  }
  check(!rows.empty(), "collate: got no samples");
  return rows;
}

Dims with_count(size_t count, const Dims& sizes) {
  Dims out = {static_cast<int64_t>(count)};
  for (const int64_t size : sizes) {
    out.push_back(size);
  }
  return out;
}

void check_padding(const Padding& padding) {
  check(!padding.field.empty(), "pad: got a field without a name");
  check(padding.multiple >= 1, "pad: got multiple ", padding.multiple, ", expected at least 1");
  check(padding.dims >= 1 && padding.dims < kMaxDims, "pad: got dims ", padding.dims,
        ", expected 1 to ", kMaxDims - 1);
}

// The sizes to which all rows are padded.
Dims padded_sizes(const std::vector<Tensor>& rows, const Padding& padding) {
  Dims sizes = rows.front().sizes();
  check(padding.dims <= sizes.size(), "pad: field '", padding.field, "' has ", sizes.size(),
        " dimensions per sample, expected at least ", padding.dims, " to pad");
  for (size_t i = 0; i < rows.size(); ++i) {
    for (int d = 0; d < sizes.size(); ++d) {
      const int64_t size = rows[i].size(d);
      if (d >= padding.dims && size != sizes[d]) {
        throw SampleError(
            i, text("has '", padding.field, "' of ", rows[i].sizes(), ", the batch began with ",
                    rows.front().sizes(), "; only the first ", padding.dims,
                    " dimensions are padded (Padding::dims)"));
      }
      sizes[d] = std::max(sizes[d], size);
    }
  }
  for (int d = 0; d < padding.dims; ++d) {
    sizes[d] = (sizes[d] + padding.multiple - 1) / padding.multiple * padding.multiple;
  }
  return sizes;
}

// Copies a row-major array into the corner of a larger one: rows of the dimensions from `dim` on.
struct CornerCopy {
  const Dims& from;
  const Dims& to;
  size_t element;

  void operator()(const std::byte*& source, std::byte* target, int dim) const {
    int64_t below = 1;  // elements of one step of this dimension in the target
    bool same = true;
    for (int d = dim + 1; d < to.size(); ++d) {
      below *= to[d];
      same = same && from[d] == to[d];
    }
    const size_t step = static_cast<size_t>(below) * element;
    if (same) {
      const size_t bytes = static_cast<size_t>(from[dim]) * step;
      std::memcpy(target, source, bytes);
      source += bytes;
      return;
    }
    for (int64_t i = 0; i < from[dim]; ++i) {
      (*this)(source, target + static_cast<size_t>(i) * step, dim + 1);
    }
  }
};

Tensor padded(const std::vector<Tensor>& rows, const Dims& sizes, double value) {
  Tensor out = full(with_count(rows.size(), sizes), value, rows.front().dtype());
  const size_t element = size_of(out.dtype());
  const size_t step = static_cast<size_t>(element_count(sizes)) * element;
  auto* target = static_cast<std::byte*>(out.view().data);
  for (const Tensor& row : rows) {
    const auto* source = static_cast<const std::byte*>(row.view().data);
    if (row.numel() > 0) {
      CornerCopy{row.sizes(), sizes, element}(source, target, 0);
    }
    target += step;
  }
  return out;
}

Tensor mask_of(const std::vector<Tensor>& rows, const Dims& sizes, int dims) {
  std::vector<Tensor> ones_of;
  Dims outer;
  for (int d = 0; d < dims; ++d) {
    outer.push_back(sizes[d]);
  }
  for (const Tensor& row : rows) {
    Dims own;
    for (int d = 0; d < dims; ++d) {
      own.push_back(row.size(d));
    }
    ones_of.push_back(ones(own, DType::boolean));
  }
  return padded(ones_of, outer, 0);
}

// Throws if an integer dtype cannot hold the padding value exactly.
void check_value(const Padding& padding, DType dtype) {
  const double stored = full({1}, padding.value, dtype).item();
  check(is_floating(dtype) || stored == padding.value, "pad: got the value ", padding.value,
        " for field '", padding.field, "', expected a value of ", dtype);
}

}  // namespace

Tensor stack_field(std::span<const Sample> samples, const std::string& field) {
  const std::vector<Tensor> rows = rows_of(samples, field);
  const Dims sizes = rows.front().sizes();
  Tensor out = empty(with_count(rows.size(), sizes), rows.front().dtype());
  const size_t bytes = static_cast<size_t>(rows.front().numel()) * size_of(out.dtype());
  auto* target = static_cast<std::byte*>(out.view().data);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].sizes() != sizes) {
      throw SampleError(i, text("has '", field, "' of ", rows[i].sizes(), ", the batch began with ",
                                sizes, "; pad it: .collate = data::pad(\"", field, "\", 0)"));
    }
    if (bytes > 0) {
      std::memcpy(target, rows[i].view().data, bytes);
      target += bytes;
    }
  }
  return out;
}

Tensor pad_field(std::span<const Sample> samples, const Padding& padding) {
  check_padding(padding);
  const std::vector<Tensor> rows = rows_of(samples, padding.field);
  check_value(padding, rows.front().dtype());
  return padded(rows, padded_sizes(rows, padding), padding.value);
}

Tensor padding_mask(std::span<const Sample> samples, const Padding& padding) {
  check_padding(padding);
  const std::vector<Tensor> rows = rows_of(samples, padding.field);
  return mask_of(rows, padded_sizes(rows, padding), padding.dims);
}

void check_same_fields(std::span<const Sample> samples) {
  const NamedTensors& first = samples.front().fields;
  for (size_t i = 0; i < samples.size(); ++i) {
    const NamedTensors& own = samples[i].fields;
    const bool same = std::equal(own.begin(), own.end(), first.begin(), first.end(),
                                 [](const auto& a, const auto& b) { return a.first == b.first; });
    if (same && i > 0) {
      continue;
    }
    try {
      check_fields("fields", own);
    } catch (const Error& error) {
      throw SampleError(i, text("is wrong: ", error.what()));
    }
    for (const auto& [name, tensor] : first) {
      if (find_field(own, name) == nullptr) {
        throw SampleError(i, text("has no field '", name, "', the batch began with: ",
                                  names_of(first), "; this sample has: ", names_of(own)));
      }
    }
    if (own.size() != first.size()) {
      throw SampleError(
          i, text("has the fields ", names_of(own), ", the batch began with: ", names_of(first)));
    }
  }
}

Collate stack() {
  return [](std::span<const Sample> samples, Batch& batch) {
    for (const auto& [name, tensor] : samples.front().fields) {
      batch.set(name, stack_field(samples, name));
    }
  };
}

Collate collate_padded(std::vector<Padding> fields) {
  check(!fields.empty(), "pad: got no fields, expected the names of those to pad");
  std::set<std::string> names;
  for (const Padding& padding : fields) {
    check_padding(padding);
    check(names.insert(padding.field).second, "pad: got field '", padding.field, "' twice");
  }
  return [fields = std::move(fields)](std::span<const Sample> samples, Batch& batch) {
    const NamedTensors& first = samples.front().fields;
    for (const Padding& padding : fields) {
      check(find_field(first, padding.field) != nullptr, "pad: got field '", padding.field,
            "', expected one of: ", names_of(first));
    }
    for (const auto& field : first) {
      const std::string& name = field.first;
      const auto padding = std::find_if(fields.begin(), fields.end(),
                                        [&](const Padding& p) { return p.field == name; });
      if (padding == fields.end()) {
        batch.set(name, stack_field(samples, name));
        continue;
      }
      const std::vector<Tensor> rows = rows_of(samples, name);
      check_value(*padding, rows.front().dtype());
      const Dims sizes = padded_sizes(rows, *padding);
      batch.set(name, padded(rows, sizes, padding->value));
      if (padding->mask) {
        const std::string mask = name + "_mask";
        check(!batch.has(mask) && find_field(first, mask) == nullptr,
              "pad: the samples have a field '", mask,
              "' already; set Padding::mask = false, or rename it");
        batch.set(mask, mask_of(rows, sizes, padding->dims));
      }
    }
  };
}

}  // namespace binade::data
