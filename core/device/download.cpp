#include <binade/core/device/download_internal.h>
#ifdef BINADE_WITH_CUDA
#include <binade/kernels/cuda/fault.h>
#endif

#include <utility>

namespace binade {

PinnedTensor pinned_like(const Tensor& like) {
  const View& from = like;
  check(!from.device.is_cpu() && from.numel > 0 && is_dense(from.sizes, from.strides),
        "pinned copy: got a tensor of ", from.numel, " elements on ", from.device,
        ", expected a dense one on a device");
  const size_t bytes = static_cast<size_t>(from.numel) * size_of(from.dtype);
  PinnedTensor made{.memory = PinnedBuffer(from.device, bytes), .tensor = {}};
  Ref<TensorData> data = detail::new_data();
  Storage& storage = *data->storage;
  // With a parent, which has no memory either, a storage does not free what it points to.
  storage.parent = detail::new_data()->storage;
  storage.data = made.memory.data();
  storage.bytes = bytes;
  data->view = from;
  data->view.data = storage.data;
  data->view.device = Device{};
  made.tensor = Tensor(std::move(data));
  return made;
}

void wait_for(const Event& event) {
  if (!event.done()) {  // else there is nothing that a HostSyncGuard should note
    event.synchronize();
  }
#ifdef BINADE_WITH_CUDA
  kernels::throw_reported_fault(event.device());
#endif
}

}  // namespace binade
