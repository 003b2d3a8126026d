#include <binade/core/device/upload.h>

#include <cstring>

namespace binade {

Tensor upload(Uploader& uploader, const Tensor& host) {
  check(host.defined() && host.device().is_cpu() && is_dense(host.sizes(), host.strides()),
        "upload: got a tensor that is not dense on the cpu; call contiguous() or to(Device{})");
  const Device device = uploader.stream().device();
  const View& from = host;
  if (from.numel == 0) {
    return empty_strided(from.sizes, from.strides, from.dtype, device);
  }
  const size_t bytes = static_cast<size_t>(from.numel) * size_of(from.dtype);
  PinnedBuffer pinned(device, bytes);
  std::memcpy(pinned.data(), from.data, bytes);

  // Creates the handles first: nothing after the copy may throw.
  Ref<TensorData> data = detail::new_data();
  Storage& storage = *data->storage;
  storage.device = device;
  storage.data = uploader.copy(std::move(pinned));
  storage.bytes = bytes;
  data->view = from;
  data->view.data = storage.data;
  data->view.device = device;
  return Tensor(std::move(data));
}

}  // namespace binade
