#include <binade/core/device/device_memory.h>
#include <binade/core/device/host_sync.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/core/tensor/packed_weights_internal.h>
#include <binade/core/tensor/tensor.h>
#include <binade/kernels/copy/copy.h>

#include <utility>

namespace binade {
namespace {

using detail::kLineBytes;

// Host data of up to one cache line is in the same block, after its Storage. With AddressSanitizer
// it has its own block, whose bounds are checked.
constexpr size_t kStorageBytes = (sizeof(Storage) + kLineBytes - 1) / kLineBytes * kLineBytes;
#ifdef BINADE_PLAIN_MALLOC
constexpr size_t kInlineBytes = 0;
#else
constexpr size_t kInlineBytes = kLineBytes;
#endif

size_t block_bytes(const Storage& storage) {
  const bool inlined =
      storage.bytes && storage.bytes <= kInlineBytes && !storage.parent && storage.device.is_cpu();
  return inlined ? kStorageBytes + kInlineBytes : sizeof(Storage);
}

Ref<Storage> allocate_storage(size_t bytes, Device device) {
  if (bytes && bytes <= kInlineBytes && device.is_cpu()) [[likely]] {
    auto* block = static_cast<std::byte*>(allocate(kStorageBytes + kInlineBytes));
    auto* storage = new (block) Storage;
    storage->device = device;
    storage->data = block + kStorageBytes;
    storage->bytes = bytes;
    return Ref<Storage>::adopt(storage);
  }
  auto owner = Ref<Storage>::adopt(new (allocate(sizeof(Storage))) Storage);
  owner->device = device;
  owner->data = !bytes            ? nullptr
                : device.is_cpu() ? static_cast<std::byte*>(allocate(bytes))
                                  : static_cast<std::byte*>(device_allocate(device, bytes));
  owner->bytes = bytes;
  return owner;
}

// Allocates memory for numel elements; the caller sets sizes, strides and `contiguous`.
Ref<TensorData> allocate_data(int64_t numel, DType dtype, Device device) {
  auto storage = allocate_storage(static_cast<size_t>(numel) * size_of(dtype), device);
  std::byte* memory = storage->data;
  auto* data = new (allocate(sizeof(TensorData))) TensorData;
  data->storage = std::move(storage);
  data->view.data = memory;
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

}  // namespace

void detail::check_in_place(const char* op, const Tensor& t) {
  check(t.defined(), op, ": got an undefined tensor");
  check(!t.requires_grad() || !grad_enabled(), op,
        ": got a tensor whose gradient is recorded; change it under a NoGradGuard, or use the "
        "functional form");
  check(!t.history() || t.history()->leaf, op,
        ": got a tensor that an op computed from others; call detach() first or use the functional "
        "form");
}

void Storage::destroy(Storage* storage) noexcept {
  if (storage->packed.load(std::memory_order_relaxed)) [[unlikely]] {
    detail::drop_packing(storage);
  }
  const size_t block = block_bytes(*storage);
  if (block == sizeof(Storage) && storage->bytes && !storage->parent) {
    storage->device.is_cpu() ? release(storage->data, storage->bytes)
                             : device_release(storage->device, storage->data, storage->bytes);
  }
  storage->~Storage();
  release(storage, block);
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
  check(t.defined(), "empty_like: got an undefined tensor, expected one with values");
  const View& from = t;
  if (!from.contiguous && !is_dense(from.sizes, from.strides)) {
    return empty(from.sizes, dtype, from.device);
  }
  auto storage = allocate_storage(static_cast<size_t>(from.numel) * size_of(dtype), from.device);
  std::byte* memory = storage->data;
  auto* data =
      new (allocate(sizeof(TensorData))) TensorData{.storage = std::move(storage), .view = from};
  data->view.data = memory;
  data->view.dtype = dtype;
  return Tensor(Ref<TensorData>::adopt(data));
}

Tensor empty_like(const Tensor& t) { return empty_like(t, t.view().dtype); }

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

void Tensor::undefined(const char* call) {
  fail(call,
       ": got an undefined tensor, expected one with values; ask defined() first (the "
       "gradient of a leaf is undefined until a backward reaches it)");
}

int64_t Tensor::size(int i) const {
  const int dims = own("size").view.sizes.size();
  check(i >= -dims && i < dims, "size: got dimension ", i, " of a tensor of shape ", sizes(),
        ", expected ", -dims, " to ", dims - 1);
  return sizes()[i < 0 ? i + dims : i];
}

bool Tensor::is_channels_last() const {
  return own("is_channels_last").view.sizes.size() >= 3 && (numel() == 0 || [this] {
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
  check(dtype() == wanted, "data: got a tensor of dtype ", dtype(), ", expected ", wanted,
        "; convert it with to()");
  check(device().is_cpu(), "data: got a tensor on ", device(),
        ", expected one on the cpu; call to(Device{}) first");
}

double Tensor::item(SourceLine where) const {
  check(defined() && numel() == 1, "item: got ",
        defined() ? to_string(sizes()) : "an undefined tensor",
        ", expected a tensor with one element; at(i) reads one of several, to_vector() all");
  return element(0, "item", where);
}

double Tensor::at(int64_t index, SourceLine where) const {
  const int64_t elements = own("at").view.numel;
  check(index >= 0 && index < elements, "at: got index ", index, " of a tensor with ", elements,
        " elements, expected 0 to ", elements - 1);
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
  detail::check_in_place("fill_", *this);
  kernels::fill({.y = *this, .value = value});
  bump_version();
}

void Tensor::copy_(const Tensor& source) const {
  detail::check_in_place("copy_", *this);
  check(source.defined(), "copy_: got an undefined source, expected a tensor that broadcasts to ",
        sizes());
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
Tensor Tensor::operator[](int64_t i) const {
  check(defined(), "x[", i, "]: got an undefined tensor x, expected one with a value");
  check(dim() > 0, "x[", i, "]: got a scalar x, expected a dimension; item() reads the value");
  const int64_t n = sizes()[0];
  check(n > 0, "x[", i, "]: got x of shape ", sizes(), ", which has no elements to index");
  check(i >= -n && i < n, "x[", i, "]: got index ", i, " for x of shape ", sizes(), ", expected ",
        -n, " to ", n - 1);
  return select(*this, 0, i);
}
Tensor Tensor::clone() const { return binade::clone(*this); }
Tensor Tensor::contiguous() const { return binade::contiguous(*this); }
Tensor Tensor::channels_last() const { return binade::channels_last(*this); }
void Tensor::backward() const { binade::backward(*this); }
void Tensor::backward(const Tensor& seed) const { binade::backward(*this, seed); }

}  // namespace binade
