#include <binade/core/create.h>
#include <binade/core/device_memory.h>
#include <binade/core/host_sync.h>
#include <binade/core/ops.h>
#include <binade/core/tensor.h>
#include <binade/kernels/copy.h>

#include <utility>

namespace binade {
namespace {

// New memory for numel elements; the caller sets sizes, strides and `contiguous`.
Ref<TensorData> allocate_data(int64_t numel, DType dtype, Device device) {
  const size_t bytes = static_cast<size_t>(numel) * size_of(dtype);
  auto* storage = new (allocate(sizeof(Storage))) Storage;
  auto owner = Ref<Storage>::adopt(storage);
  storage->device = device;
  storage->data = bytes ? static_cast<std::byte*>(device.is_cpu() ? allocate(bytes)
                                                                  : device_allocate(device, bytes))
                        : nullptr;
  storage->bytes = bytes;
  auto* data = new (allocate(sizeof(TensorData))) TensorData;
  data->storage = std::move(owner);
  data->view.data = storage->data;
  data->view.numel = numel;
  data->view.dtype = dtype;
  data->view.device = device;
  return Ref<TensorData>::adopt(data);
}

Ref<TensorData> share_data(const Tensor& t, Ref<Storage> storage, const Dims& sizes,
                           const Dims& strides, int64_t offset) {
  auto* data = new (allocate(sizeof(TensorData))) TensorData;
  data->storage = std::move(storage);
  const View& from = t;
  data->view = from;
  data->view.data =
      from.data ? from.data + offset * static_cast<int64_t>(size_of(from.dtype)) : nullptr;
  data->view.numel = element_count(sizes);
  data->view.sizes = sizes;
  data->view.strides = strides;
  data->view.contiguous = is_row_major(sizes, strides);
  return Ref<TensorData>::adopt(data);
}

void check_in_place(const char* op, const Tensor& t) {
  check(!t.requires_grad() || !grad_enabled(), op,
        ": got a tensor whose gradient is recorded; change it under a NoGradGuard, or use the "
        "functional form");
  check(!t.history() || t.history()->leaf, op,
        ": got a tensor that an op computed from others; call detach() first or use the functional "
        "form");
}

}  // namespace

void Storage::destroy(Storage* storage) noexcept {
  if (storage->bytes && !storage->parent) {
    storage->device.is_cpu() ? release(storage->data, storage->bytes)
                             : device_release(storage->device, storage->data, storage->bytes);
  }
  storage->~Storage();
  release(storage, sizeof(Storage));
}

void TensorData::destroy(TensorData* data) noexcept {
  data->~TensorData();
  release(data, sizeof(TensorData));
}

Tensor empty(const Dims& sizes, DType dtype, Device device) {
  Ref<TensorData> data = allocate_data(element_count(sizes, "empty"), dtype, device);
  data->view.sizes = sizes;
  data->view.strides = row_major_strides(sizes);
  return Tensor(std::move(data));
}

Tensor empty_strided(const Dims& sizes, const Dims& strides, DType dtype, Device device) {
  check(sizes.size() == strides.size() && is_dense(sizes, strides), "empty_strided: got sizes ",
        sizes, " with strides ", strides, ", expected strides of a dense tensor");
  Ref<TensorData> data = allocate_data(element_count(sizes, "empty_strided"), dtype, device);
  data->view.sizes = sizes;
  data->view.strides = strides;
  data->view.contiguous = is_row_major(sizes, strides);
  return Tensor(std::move(data));
}

Tensor empty_like(const Tensor& t, DType dtype) {
  const View& from = t;
  Ref<TensorData> data = allocate_data(from.numel, dtype, from.device);
  data->view.sizes = from.sizes;
  const bool keep = from.contiguous || is_dense(from.sizes, from.strides);
  data->view.strides = keep ? from.strides : row_major_strides(from.sizes);
  data->view.contiguous = from.contiguous || !keep;
  return Tensor(std::move(data));
}

Tensor empty_like(const Tensor& t) { return empty_like(t, t.dtype()); }

Tensor make_view(const Tensor& t, const Dims& sizes, const Dims& strides, int64_t offset) {
  return Tensor(share_data(t, t.handle()->storage, sizes, strides, offset));
}

Tensor make_range(const Tensor& t, const Dims& sizes, const Dims& strides, int64_t offset) {
  Ref<TensorData> data = share_data(t, {}, sizes, strides, offset);
  auto* storage = new (allocate(sizeof(Storage))) Storage;
  storage->parent = t.handle()->storage;
  storage->device = t.device();
  storage->data = data->view.data;
  storage->bytes = static_cast<size_t>(data->view.numel) * size_of(t.dtype());
  data->storage = Ref<Storage>::adopt(storage);
  return Tensor(std::move(data));
}

int64_t Tensor::size(int i) const {
  const int dims = dim();
  check(i >= -dims && i < dims, "size: got dimension ", i, " of a tensor of shape ", sizes());
  return sizes()[i < 0 ? i + dims : i];
}

bool Tensor::is_channels_last() const {
  return dim() >= 3 && (numel() == 0 || [this] {
           const Dims wanted = channels_last_strides(sizes());
           for (int i = 0; i < dim(); ++i) {
             if (sizes()[i] != 1 && strides()[i] != wanted[i]) {
               return false;
             }
           }
           return true;
         }());
}

void Tensor::check_dtype(DType wanted) const {
  check(defined(), "data: got an undefined tensor");
  check(dtype() == wanted, "data: got a tensor of dtype ", dtype(), ", expected ", wanted);
  check(device().is_cpu(), "data: got a tensor on ", device(),
        ", expected one on the cpu; call to(Device{}) first");
}

double Tensor::item(SourceLine where) const {
  check(defined() && numel() == 1, "item: got ",
        defined() ? to_string(sizes()) : "an undefined tensor",
        ", expected a tensor with one element");
  return element(0, "item", where);
}

double Tensor::at(int64_t index, SourceLine where) const {
  check(index >= 0 && index < numel(), "at: got index ", index, " of a tensor with ", numel(),
        " elements");
  return element(index, "at", where);
}

double Tensor::element(int64_t index, const char* call, SourceLine where) const {
  int64_t offset = 0;
  for (int i = dim() - 1; i >= 0; --i) {
    offset += index % sizes()[i] * strides()[i];
    index /= sizes()[i];
  }
  return dispatch(call, dtype(), [&]<class T>(Type<T>) {
    const T* element = view().as<T>() + offset;
    T value;
    if (device().is_cpu()) {
      value = *element;
    } else {
      const detail::HostSyncCall reads(call, where);
      device_copy(&value, Device{}, element, device(), sizeof value);
    }
    return static_cast<double>(value);
  });
}

void Tensor::fill_(double value) const {
  check_in_place("fill_", *this);
  kernels::fill({.y = *this, .value = value});
  bump_version();
}

void Tensor::copy_(const Tensor& source) const {
  check_in_place("copy_", *this);
  check(broadcast_sizes("copy_", sizes(), source.sizes()) == sizes(),
        "copy_: got a source of shape ", source.sizes(), ", expected one that broadcasts to ",
        sizes());
  kernels::copy({.x = source.to(device()), .y = *this});
  bump_version();
}

Tensor Tensor::to(DType dtype) const { return cast(*this, dtype); }
Tensor Tensor::to(Device device, SourceLine where) const {
  const detail::HostSyncCall moves("to", where);
  return to_device(*this, device);
}
Tensor Tensor::reshape(const Dims& sizes) const { return binade::reshape(*this, sizes); }
Tensor Tensor::transpose(int i, int j) const { return binade::transpose(*this, i, j); }
Tensor Tensor::contiguous() const { return binade::contiguous(*this); }
Tensor Tensor::channels_last() const { return binade::channels_last(*this); }
void Tensor::backward() const { binade::backward(*this); }
void Tensor::backward(const Tensor& seed) const { binade::backward(*this, seed); }

}  // namespace binade
