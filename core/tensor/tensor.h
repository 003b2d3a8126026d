// Tensor: a 16-byte handle {data, history}.
//
// `data` is a counted View of a counted Storage; tensors with the same storage see each other's
// writes. `history` is null for a plain tensor; else it is the graph node that computed the value,
// or the leaf that collects a parameter's gradient. Data never points to history, so reference
// cycles are impossible. Copying a Tensor copies the handle, never the data. Several threads may
// use handles; the data is not locked.
#pragma once
#include <binade/core/device/memory.h>
#include <binade/core/tensor/ref.h>
#include <binade/core/tensor/source_line.h>
#include <binade/kernels/base/view.h>

#include <functional>
#include <vector>

namespace binade {

struct Storage {
  std::atomic<uint32_t> refs{1};
  std::atomic<uint32_t> version{0};  // incremented by every in-place write
  std::atomic<uint32_t> saves{0};    // how many backward graphs hold it
  Device device;
  std::atomic<bool> exposed{false};  // data<T>() gave out a pointer that may write
  std::atomic<bool> packed{false};   // has packings (core/tensor/packed_weights.h)
  std::byte* data = nullptr;
  size_t bytes = 0;
  Ref<Storage> parent;  // set for a range of an arena, which owns the memory
  void expose() {
    if (!exposed.load(std::memory_order_relaxed)) {
      exposed.store(true, std::memory_order_relaxed);
    }
  }
  static void destroy(Storage* storage) noexcept;
};

struct TensorData {
  std::atomic<uint32_t> refs{1};
  std::atomic<uint16_t> untracked{0};  // detail::untracked_word() (core/autograd/autograd.h)
  // Constant because the first tensor on a storage is in the storage's block: with another storage
  // here, the block could be freed under the tensor. See detail::replace_storage().
  const Ref<Storage> storage;
  View view;
  static void destroy(TensorData* data) noexcept;
};

class Tensor;

namespace detail {
// A storage without memory and the first tensor on it, which has no view yet.
Ref<TensorData> new_data();
// Gives t, a range or a view, the storage and the view of `by`; every handle of t sees it. An error
// for the first tensor on its storage.
void replace_storage(const Tensor& t, const Tensor& by);
}  // namespace detail

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Ref<TensorData> data, Ref<Node> history = {}) noexcept
      : data_(std::move(data)), history_(std::move(history)) {}
  Tensor(Tensor&& data, Ref<Node> history) noexcept
      : data_(std::move(data.data_)), history_(std::move(history)) {}
  Tensor(const Tensor&) noexcept;
  Tensor(Tensor&&) noexcept;
  Tensor& operator=(const Tensor&) & noexcept;
  Tensor& operator=(Tensor&&) & noexcept;
  // x[0] = y writes y into the part of x, as copy_() does, and x[0] = 2 fills it. It is an error if
  // the gradient of y is recorded, or if nothing else shares the memory of the temporary, as in
  // index(x, {mask}) = y: the value would be lost.
  void operator=(const Tensor& y) &&;  // NOLINT
  void operator=(double value) &&;     // NOLINT
  ~Tensor();

  // Everything below but defined() and view() is an error on an undefined tensor, such as Tensor()
  // or the gradient of a leaf before a backward.
  bool defined() const { return static_cast<bool>(data_); }
  const Dims& sizes() const { return own("sizes").view.sizes; }
  const Dims& strides() const { return own("strides").view.strides; }
  int dim() const { return own("dim").view.sizes.size(); }
  int64_t size(int i) const;  // negative i counts from the end
  int64_t numel() const { return own("numel").view.numel; }
  DType dtype() const { return own("dtype").view.dtype; }
  Device device() const { return own("device").view.device; }
  bool is_contiguous() const { return own("is_contiguous").view.contiguous; }  // row-major, dense
  bool is_channels_last() const;  // dense with channels innermost

  // The view that kernels take; null for an undefined tensor.
  operator const View&() const { return data_ ? data_->view : kNoView; }  // NOLINT
  const View& view() const { return *this; }

  // Host pointer to the first element; mind the strides. Throws on a wrong dtype. data<const T>()
  // only reads; after data<T>() of a parameter with an f32 master every later step checks whether
  // the pointer was used to change values (Arena::follow_values()).
  template <class T>
  T* data() const {
    check_dtype(dtype_of<std::remove_const_t<T>>);
    if constexpr (!std::is_const_v<T>) {
      data_->storage->expose();
    }
    return data_->view.as<T>();
  }
  // The value of a tensor with one element. On a GPU every call waits for the device.
  double item(SourceLine where = SourceLine::here()) const;
  // The element at a row-major index, as a double.
  double at(int64_t index, SourceLine where = SourceLine::here()) const;
  // All elements in row-major order, from any layout and device. T must hold every value of the
  // dtype: the same type, a wider one of its kind, or a floating type for u8, bool and i32
  // (double).
  template <class T>
  std::vector<T> to_vector(SourceLine where = SourceLine::here()) const;
  // The i-th part along the first dimension, a view; negative i counts from the end.
  // Differentiable.
  Tensor operator[](int64_t i) const;
  // The parts along the first dimension with these indices (i64), or those where a mask (bool) is
  // true: index(x, {indices}) of core/ops/advanced_index.h, a copy. index_put_ writes.
  Tensor operator[](const Tensor& indices) const;

  // A tensor of values in row-major order, with the dtype of T: double, float, half, bfloat16,
  // int64_t, int32_t, uint8_t or bool. Without sizes it has one dimension; nested lists of equal
  // length have two. Note that 1.0 is a double, and 1 an int32_t.
  template <class T>
  static Tensor from(std::span<const T> values, const Dims& sizes, Device device = {}) {
    return copied(values.data(), values.size(), element_dtype<T>(), sizes, device);
  }
  template <class T>
  static Tensor from(const std::vector<T>& values, const Dims& sizes, Device device = {});
  template <class T>
  static Tensor from(const std::vector<T>& values) {
    return from(values, {static_cast<int64_t>(values.size())});
  }
  template <class T>
  static Tensor from(std::initializer_list<T> values, const Dims& sizes, Device device = {}) {
    return from(std::span<const T>(values.begin(), values.size()), sizes, device);
  }
  template <class T>
  static Tensor from(std::initializer_list<T> values) {
    return from(values, {static_cast<int64_t>(values.size())});
  }
  template <class T>
  static Tensor from(std::initializer_list<std::initializer_list<T>> rows);

  Tensor detach() const { return Tensor(data_); }  // same data, no history, no allocation
  bool requires_grad() const { return static_cast<bool>(history_); }
  // Makes this handle a leaf that collects gradients. Copies made before do not become leaves.
  Tensor& require_grad();
  // The gradient of a leaf, unscaled, f32 (f64 for f64 leaves); undefined if none, or if frozen.
  Tensor grad() const;
  void zero_grad() const;
  // Computes the gradients of all leaves from this tensor; core/autograd/autograd.h has options.
  void backward() const;
  void backward(const Tensor& seed) const;

  // In-place changes; errors if the tensor has a graph history (for a leaf only under NoGradGuard).
  void fill_(double value) const;
  void copy_(const Tensor& source) const;  // casts and broadcasts

  // x += y writes x + y into x's memory; all tensors that share it see the change, so x[0] += 1
  // changes x. The result must have x's sizes and dtype. A backward that saved the old values
  // becomes an error.
  //
  // If the gradient of x or y is recorded, x += y is x = x + y instead: this handle holds the new
  // value with its history, and other handles keep the old one. It is an error where the change
  // would be lost or not be in the graph: for a leaf (a NoGradGuard allows it), a part of a larger
  // tensor such as x[0], a temporary or const handle; under a NoGradGuard for a tensor with a
  // history that is no leaf. A temporary whose memory nothing else shares is always an error.
  Tensor& operator+=(const Tensor& y) &;
  Tensor& operator-=(const Tensor& y) &;
  Tensor& operator*=(const Tensor& y) &;
  Tensor& operator/=(const Tensor& y) &;
  Tensor& operator+=(double y) &;
  Tensor& operator-=(double y) &;
  Tensor& operator*=(double y) &;
  Tensor& operator/=(double y) &;
  void operator+=(const Tensor& y) const&;
  void operator-=(const Tensor& y) const&;
  void operator*=(const Tensor& y) const&;
  void operator/=(const Tensor& y) const&;
  void operator+=(double y) const&;
  void operator-=(double y) const&;
  void operator*=(double y) const&;
  void operator/=(double y) const&;
  void operator+=(const Tensor& y) &&;
  void operator-=(const Tensor& y) &&;
  void operator*=(const Tensor& y) &&;
  void operator/=(const Tensor& y) &&;
  void operator+=(double y) &&;
  void operator-=(double y) &&;
  void operator*=(double y) &&;
  void operator/=(double y) &&;

  Tensor to(DType dtype) const;  // differentiable
  Tensor to(Device device, SourceLine where = SourceLine::here()) const;
  Tensor reshape(const Dims& sizes) const;
  Tensor transpose(int i, int j) const;
  Tensor clone() const;  // a differentiable copy, also of the layout if it is dense
  Tensor contiguous() const;
  Tensor channels_last() const;

  uint32_t version() const {
    return own("version").storage->version.load(std::memory_order_relaxed);
  }
  void bump_version() const {
    own("bump_version").storage->version.fetch_add(1, std::memory_order_relaxed);
  }
  const Ref<TensorData>& handle() const { return data_; }
  const Ref<Node>& history() const { return history_; }
  bool sole_owner() const { return data_ && data_.unique() && data_->storage.unique(); }

 private:
  const TensorData& own(const char* call) const {
    if (!data_) [[unlikely]] {
      undefined(call);
    }
    return *data_;
  }
  [[noreturn]] static void undefined(const char* call);
  void check_dtype(DType wanted) const;
  double element(int64_t index, const char* call, SourceLine where) const;
  template <class T>
  static constexpr DType element_dtype() {
    static_assert(dtype_of<T> != DType::boolean || std::is_same_v<T, bool>,
                  "expected double, float, half, bfloat16, int64_t, int32_t, uint8_t or bool");
    return dtype_of<T>;
  }
  static Tensor copied(const void* values, size_t count, DType dtype, const Dims& sizes,
                       Device device);
  // Writes the elements to `values`, converted to a dtype that holds them.
  void copy_to(void* values, DType dtype, SourceLine where) const;

  Ref<TensorData> data_;
  Ref<Node> history_;
};

// Uninitialised memory.
Tensor empty(const Dims& sizes, DType dtype = DType::f32, Device device = {});
Tensor empty_strided(const Dims& sizes, const Dims& strides, DType dtype, Device device = {});
// The sizes, dtype and device of t, and its strides if they are dense.
Tensor empty_like(const Tensor& t);
Tensor empty_like(const Tensor& t, DType dtype);

// A view of t's storage, without history: for ops that define their own gradient. The offset is in
// elements.
Tensor make_view(const Tensor& t, const Dims& sizes, const Dims& strides, int64_t offset = 0);
// A range of t's storage with its own version: for arenas.
Tensor make_range(const Tensor& t, const Dims& sizes, const Dims& strides, int64_t offset);

static_assert(sizeof(Tensor) == 16);

template <class T>
std::vector<T> Tensor::to_vector(SourceLine where) const {
  const auto count = static_cast<size_t>(defined() ? numel() : 0);
  if constexpr (std::is_same_v<T, bool>) {  // std::vector<bool> has bits
    std::vector<uint8_t> bytes(count);
    copy_to(bytes.data(), DType::boolean, where);
    return std::vector<bool>(bytes.begin(), bytes.end());
  } else {
    std::vector<T> values(count);
    copy_to(values.data(), element_dtype<T>(), where);
    return values;
  }
}

template <class T>
Tensor Tensor::from(const std::vector<T>& values, const Dims& sizes, Device device) {
  if constexpr (std::is_same_v<T, bool>) {
    const std::vector<uint8_t> bytes(values.begin(), values.end());
    return copied(bytes.data(), bytes.size(), DType::boolean, sizes, device);
  } else {
    return from(std::span<const T>(values), sizes, device);
  }
}

template <class T>
Tensor Tensor::from(std::initializer_list<std::initializer_list<T>> rows) {
  std::vector<T> values;
  const size_t columns = rows.size() ? rows.begin()->size() : 0;
  for (const auto& row : rows) {
    check(row.size() == columns, "from: got rows of ", columns, " and ", row.size(),
          " values, expected equal lengths");
    values.insert(values.end(), row.begin(), row.end());
  }
  return from(values, {static_cast<int64_t>(rows.size()), static_cast<int64_t>(columns)});
}

}  // namespace binade

#include <binade/core/autograd/node.h>
