// DatasetPtr and IterablePtr: the types by which functions take a dataset.
#pragma once
#include <concepts>
#include <memory>
#include <type_traits>

namespace binade::data {

class Dataset;
class IterableDataset;

// Takes a shared_ptr; a temporary, which is moved and kept alive; or a variable, which must outlive
// everything that uses it.
template <class Base>
class Shared {
 public:
  template <class D>
  requires std::derived_from<std::remove_cvref_t<D>, Base> Shared(D&& dataset)  // NOLINT
      : dataset_(keep(std::forward<D>(dataset))) {}
  template <class D>
  requires std::convertible_to<D*, const Base*> Shared(std::shared_ptr<D> dataset)  // NOLINT
      : dataset_(std::move(dataset)) {}

  operator std::shared_ptr<const Base>() const { return dataset_; }  // NOLINT
  const std::shared_ptr<const Base>& get() const { return dataset_; }
  const Base* operator->() const { return dataset_.get(); }

 private:
  template <class D>
  static std::shared_ptr<const Base> keep(D&& dataset) {
    if constexpr (std::is_lvalue_reference_v<D>) {
      return {std::shared_ptr<const Base>(), &dataset};
    } else {
      static_assert(std::is_move_constructible_v<D>,
                    "a temporary dataset must be movable: make it a variable, or a shared_ptr");
      return std::make_shared<std::remove_cvref_t<D>>(std::forward<D>(dataset));
    }
  }

  std::shared_ptr<const Base> dataset_;
};
using DatasetPtr = Shared<Dataset>;
using IterablePtr = Shared<IterableDataset>;

}  // namespace binade::data
