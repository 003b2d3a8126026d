#include <binade/core/autograd/autograd.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/nn/module_walk_internal.h>
#include <binade/nn/stored_as.h>

#include <map>

namespace binade::nn {
namespace {

// A copy in a dtype, in the same order of memory.
Tensor copy_in(const Tensor& t, DType dtype) {
  Tensor copy = empty_like(t, dtype);
  copy.copy_(t);
  return copy;
}

}  // namespace

struct StoredAs::Kept {
  struct OfModule {
    Module* module;
    std::optional<Precision> precision;
    DType wide;
  };
  struct OfTensor {
    Tensor* place;
    Tensor tensor;
  };
  Module* root;
  std::shared_ptr<Arena> arena;
  std::vector<OfModule> modules = {};
  std::vector<OfTensor> tensors = {};
};

StoredAs::StoredAs(Module& model, const Precision& precision, const StoredAsOptions& options)
    : kept_(std::make_unique<Kept>(Kept{&model.root(), model.root().arena_})) {
  const NoGradGuard guard;
  try {
    // The new values are computed first: they need the arena and the current precision.
    std::vector<Tensor> exact;
    for (const Module::Shared& shared : model.shared_parameters()) {
      exact.push_back(model.exact_value(shared.tensor()));
    }
    model.walk("", [&](const std::string&, Module& module) {
      kept_->modules.push_back({&module, module.precision_, module.wide_});
      module.precision_ = precision;
      module.wide_ = options.wide;
    });
    kept_->root->arena_ = nullptr;
    std::map<const Module::OwnParameter*, std::pair<const Module*, std::string>> owners;
    model.walk("", [&](const std::string& at, Module& module) {
      for (const auto& own : module.own_parameters_) {
        owners[own.get()] = {&module, at};
      }
    });
    size_t next = 0;
    for (const Module::Shared& shared : model.shared_parameters()) {
      const Tensor stored = shared.tensor().detach(), value = exact[next++];
      const auto& [module, at] = owners.at(shared.members[0].own);
      const DType dtype = module->wanted_dtype(shared, at);
      const Tensor rounding = sub(copy_in(stored, DType::f64), copy_in(value, DType::f64));
      Tensor copy = copy_in(value, dtype);
      if (options.rounding != 0) {
        copy.copy_(add(copy, mul(rounding, options.rounding).to(dtype)));
      }
      copy.require_grad();
      parameters_.push_back({shared.name(), copy, rounding});
      for (const Module::Member& member : shared.members) {
        kept_->tensors.push_back({member.own->tensor, *member.own->tensor});
        *member.own->tensor = copy;
      }
    }
    for (const Module::Buffer& buffer : model.buffers()) {
      kept_->tensors.push_back({buffer.tensor, *buffer.tensor});
      *buffer.tensor =
          copy_in(*buffer.tensor,
                  is_floating(buffer.tensor->dtype()) ? options.wide : buffer.tensor->dtype());
    }
  } catch (...) {
    put_back();
    throw;
  }
}

StoredAs::~StoredAs() { put_back(); }

void StoredAs::put_back() noexcept {
  // In reverse order, so that a tensor that is registered twice gets its first value back.
  for (auto kept = kept_->tensors.rbegin(); kept != kept_->tensors.rend(); ++kept) {
    *kept->place = std::move(kept->tensor);
  }
  for (Kept::OfModule& of : kept_->modules) {
    of.module->precision_ = std::move(of.precision);
    of.module->wide_ = of.wide;
  }
  kept_->root->arena_ = std::move(kept_->arena);
}

}  // namespace binade::nn
