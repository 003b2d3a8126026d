#include <binade/core/device/device_memory.h>
#include <binade/core/device/host_sync.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/core/tensor/packed_weights_internal.h>
#include <binade/core/tensor/tensor.h>
#include <binade/core/tensor/view_internal.h>
#include <binade/kernels/copy/copy.h>

#include <memory>
#include <type_traits>
#include <utility>

namespace binade {
namespace {

using detail::kLineBytes;

// A storage and the first tensor on it share one block, which lives as long as the storage. This is
// safe because the tensor holds its storage, and TensorData::storage never changes while the tensor
// is there. A view and a range have a block of their own, which lives as long as they do.
//
// The address tells where a tensor is: every storage's block has the place of a first tensor, even
// if it stays unused, so no other tensor can be at that address.
//
// Host data of up to one cache line follows in the same block. With AddressSanitizer the data has
// its own block, whose bounds are checked.
constexpr size_t kHeaderBytes =
    (sizeof(Storage) + sizeof(TensorData) + kLineBytes - 1) / kLineBytes * kLineBytes;
static_assert(sizeof(Storage) % alignof(TensorData) == 0);
#ifdef BINADE_PLAIN_MALLOC
constexpr size_t kInlineBytes = 0;
#else
constexpr size_t kInlineBytes = kLineBytes;
#endif

// The place of the first tensor.
TensorData* first_of(Storage* storage) {
  return reinterpret_cast<TensorData*>(reinterpret_cast<std::byte*>(storage) + sizeof(Storage));
}

bool fits_inline(size_t bytes, Device device) {
  return bytes && bytes <= kInlineBytes && device.is_cpu();
}

[[gnu::noinline]] Storage* allocate_apart(size_t bytes, Device device) {
  auto owner = Ref<Storage>::adopt(new (allocate(kHeaderBytes)) Storage);
  owner->device = device;
  owner->data = !bytes            ? nullptr
                : device.is_cpu() ? static_cast<std::byte*>(allocate(bytes))
                                  : static_cast<std::byte*>(device_allocate(device, bytes));
  owner->bytes = bytes;
  return owner.leave();
}

// A storage with the count 1.
[[gnu::always_inline]] inline Storage* allocate_storage(size_t bytes, Device device) {
  if (!fits_inline(bytes, device)) [[unlikely]] {
    return allocate_apart(bytes, device);
  }
  auto* block = static_cast<std::byte*>(allocate(kHeaderBytes + kInlineBytes));
  auto* storage = new (block) Storage;
  storage->device = device;
  storage->data = block + kHeaderBytes;
  storage->bytes = bytes;
  return storage;
}

// A tensor on new memory, whose view is `like` except for the memory and the dtype. The fields are
// copied one by one: wide loads of fields that were just written would wait for these stores.
[[gnu::always_inline]] inline Tensor first_tensor(const View& like, DType dtype) {
  Storage* storage =
      allocate_storage(static_cast<size_t>(like.numel) * size_of(dtype), like.device);
  auto* data = new (first_of(storage)) TensorData{.storage = Ref<Storage>::adopt(storage),
                                                  .view = {.data = storage->data,
                                                           .numel = like.numel,
                                                           .dtype = dtype,
                                                           .device = like.device,
                                                           .contiguous = like.contiguous,
                                                           .sizes = like.sizes,
                                                           .strides = like.strides}};
  return Tensor(Ref<TensorData>::adopt(data));
}

struct Place {
  const Dims& sizes;
  const Dims& strides;
  int64_t offset;  // in elements
};

View view_at(const View& from, const Place& place, int64_t numel) {
  return {.data = from.data ? from.data + place.offset * static_cast<int64_t>(size_of(from.dtype))
                            : nullptr,
          .numel = numel,
          .dtype = from.dtype,
          .device = from.device,
          .contiguous = is_row_major(place.sizes, place.strides),
          .sizes = place.sizes,
          .strides = place.strides};
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

Ref<TensorData> detail::new_data() {
  auto storage = Ref<Storage>::adopt(new (allocate(kHeaderBytes)) Storage);
  TensorData* place = first_of(storage.get());
  return Ref<TensorData>::adopt(new (place) TensorData{.storage = std::move(storage), .view = {}});
}

void detail::replace_storage(const Tensor& t, const Tensor& by) {
  TensorData& data = *t.handle();
  check(&data != first_of(data.storage.get()),
        "replace_storage: got the first tensor on its storage, whose block holds it; expected a "
        "range or a view");
  Ref<Storage> storage = by.handle()->storage;
  std::destroy_at(&data.storage);
  std::construct_at(&data.storage, std::move(storage));
  data.view = by.view();
}

namespace {

[[gnu::noinline]] void destroy_apart(Storage* storage) noexcept {
  if (storage->packed.load(std::memory_order_relaxed)) {
    detail::drop_packing(storage);
  }
  const bool inlined = !storage->parent && fits_inline(storage->bytes, storage->device);
  if (!inlined && storage->bytes && !storage->parent) {
    storage->device.is_cpu() ? release(storage->data, storage->bytes)
                             : device_release(storage->device, storage->data, storage->bytes);
  }
  storage->~Storage();
  release(storage, inlined ? kHeaderBytes + kInlineBytes : kHeaderBytes);
}

// The common case in a few instructions: data in the same block, and no packing.
inline void destroy_storage(Storage* storage) noexcept {
  if (storage->parent || storage->packed.load(std::memory_order_relaxed) ||
      !fits_inline(storage->bytes, storage->device)) [[unlikely]] {
    return destroy_apart(storage);
  }
  storage->~Storage();
  release(storage, kHeaderBytes + kInlineBytes);
}

}  // namespace

void Storage::destroy(Storage* storage) noexcept { destroy_storage(storage); }

void TensorData::destroy(TensorData* data) noexcept {
  Storage* storage = data->storage.get();                 // its count passes on to this function
  static_assert(std::is_trivially_destructible_v<View>);  // nothing else needs a destructor
  if (data != first_of(storage)) {
    release(data, sizeof(TensorData));
  }
  if (Ref<Storage>::drop_one(storage)) {
    destroy_storage(storage);
  }
}

Tensor empty(const Dims& sizes, DType dtype, Device device) {
  return first_tensor({.numel = element_count(sizes, "empty"),
                       .device = device,
                       .sizes = sizes,
                       .strides = row_major_strides(sizes)},
                      dtype);
}

Tensor empty_strided(const Dims& sizes, const Dims& strides, DType dtype, Device device) {
  check(sizes.size() == strides.size() && is_dense(sizes, strides), "empty_strided: got sizes ",
        sizes, " with strides ", strides, ", expected strides of a dense tensor");
  return first_tensor({.numel = element_count(sizes, "empty_strided"),
                       .device = device,
                       .contiguous = is_row_major(sizes, strides),
                       .sizes = sizes,
                       .strides = strides},
                      dtype);
}

namespace {
[[gnu::noinline]] Tensor like_strided(const View& from, DType dtype) {
  return is_dense(from.sizes, from.strides) ? first_tensor(from, dtype)
                                            : empty(from.sizes, dtype, from.device);
}
}  // namespace

Tensor empty_like(const Tensor& t, DType dtype) {
  check(t.defined(), "empty_like: got an undefined tensor, expected one with values");
  const View& from = t.handle()->view;
  return from.contiguous ? first_tensor(from, dtype) : like_strided(from, dtype);
}

Tensor empty_like(const Tensor& t) { return empty_like(t, t.view().dtype); }

Tensor detail::make_view(const char* op, const Tensor& t, const Dims& sizes, const Dims& strides,
                         int64_t offset) {
  const TensorData& from = *t.handle();
  const int64_t numel = element_count(sizes, op);
  auto* data = new (allocate(sizeof(TensorData))) TensorData{
      .storage = from.storage, .view = view_at(from.view, {sizes, strides, offset}, numel)};
  return Tensor(Ref<TensorData>::adopt(data));
}

Tensor make_view(const Tensor& t, const Dims& sizes, const Dims& strides, int64_t offset) {
  return detail::make_view("tensor", t, sizes, strides, offset);
}

Tensor make_range(const Tensor& t, const Dims& sizes, const Dims& strides, int64_t offset) {
  const TensorData& from = *t.handle();
  const int64_t numel = element_count(sizes);
  auto storage = Ref<Storage>::adopt(new (allocate(kHeaderBytes)) Storage);
  storage->parent = from.storage;
  auto* data = new (allocate(sizeof(TensorData)))
      TensorData{.storage = storage, .view = view_at(from.view, {sizes, strides, offset}, numel)};
  storage->device = data->view.device;
  storage->data = data->view.data;
  storage->bytes = static_cast<size_t>(numel) * size_of(data->view.dtype);
  return Tensor(Ref<TensorData>::adopt(data));
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
  if (!defined() || numel() != 1) [[unlikely]] {
    fail("item: got ", defined() ? to_string(sizes()) : "an undefined tensor",
         ", expected a tensor with one element; at(i) reads one of several, to_vector() all");
  }
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
