#include <binade/core/device/device_memory.h>
#include <binade/core/device/download_internal.h>
#include <binade/core/observe/warning.h>
#include <binade/core/ops.h>
#include <binade/core/tensor/create.h>
#include <binade/train/checkpoint/host_snapshot_internal.h>
#include <binade/train/checkpoint_manifest_internal.h>
#include <binade/train/model_file.h>

#include <algorithm>
#include <utility>

namespace binade::train {
namespace {

bool same_layout(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

Tensor dense(const Tensor& tensor) {
  Tensor source = tensor.detach();
  return is_dense(source.sizes(), source.strides()) ? source : contiguous(source);
}

// The host waits for copies from a device, unless `to` is in pinned memory.
void copy_to_host(const Tensor& source, const Tensor& to) {
  if (source.device().is_cpu()) {
    Tensor(to).copy_(source);
  } else {
    device_copy(to.view().data, Device{}, source.view().data, source.device(),
                static_cast<size_t>(source.numel()) * size_of(source.dtype()));
  }
}

Tensor pageable_like(const Tensor& source) {
  return empty_strided(source.sizes(), source.strides(), source.dtype(), Device{});
}

}  // namespace

NamedTensors copies(const NamedTensors& tensors) {
  const NoGradGuard guard;
  NamedTensors out;
  for (const auto& [name, tensor] : tensors) {
    Tensor copy = empty_like(tensor);
    copy.copy_(tensor.detach());
    out.emplace_back(name, std::move(copy));
  }
  return out;
}

std::vector<CheckpointFile> checkpoint_files(const StateParts& parts) {
  std::vector<CheckpointFile> files;
  for (const StatePart& part : parts) {
    files.push_back({.name = part.file,
                     .bytes = tensor_bytes(part.tensors),
                     .write = [&part](OutputFile& file) { write_tensors(file, part.tensors); },
                     .feature = part.file.ends_with(kScalesFile) ? kDelayedScalesFeature : ""});
  }
  return files;
}

NamedTensors host_copies(const NamedTensors& tensors) {
  const NoGradGuard guard;
  NamedTensors out;
  for (const auto& [name, tensor] : tensors) {
    const Tensor source = dense(tensor);
    out.emplace_back(name, pageable_like(source));
    copy_to_host(source, out.back().second);
  }
  return out;
}

HostSnapshot::~HostSnapshot() {
  const bool pinned = std::any_of(memory_.begin(), memory_.end(), [](const auto& part) {
    return std::any_of(part.begin(), part.end(), [](const auto& one) { return one.size() > 0; });
  });
  try {
    if (forks_ != fork_count()) {
      // The device is the parent's: nothing here may call it.
      new std::vector(std::move(memory_));
      new std::vector(std::move(queued_));
      return;
    }
    arrive();
    parts_.clear();
    memory_.clear();
    if (pinned) {
      empty_pinned_cache();  // a state is large, and pinned memory is never swapped out
    }
  } catch (const std::exception&) {  // the device has failed, and its next user gets that error
  }
}

void HostSnapshot::take(const StateParts& parts) {
  const NoGradGuard guard;
  arrive();  // a save that was left out did not wait for its copy
  parts_.resize(parts.size());
  memory_.resize(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    parts_[i].file = parts[i].file;
    take_part(parts[i].tensors, parts_[i].tensors, memory_[i]);
  }
  for (binade::Event& event : queued_) {
    event.record();
  }
}

void HostSnapshot::take_part(const NamedTensors& from, NamedTensors& to,
                             std::vector<PinnedBuffer>& memory) {
  to.resize(from.size());
  memory.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    const Tensor source = dense(from[i].second);
    auto& [name, copy] = to[i];
    if (name != from[i].first || !copy.defined() || !same_layout(source, copy)) {
      name = from[i].first;
      copy = {};
      memory[i] = {};
    }
    take_tensor(source, copy, memory[i]);
  }
}

void HostSnapshot::take_tensor(const Tensor& source, Tensor& to, PinnedBuffer& memory) {
  if (!to.defined()) {
    to = host_tensor_like(source, memory);
  }
  copy_to_host(source, to);
  const Device device = source.device();
  const auto known = std::find_if(queued_.begin(), queued_.end(), [&](const binade::Event& event) {
    return event.device() == device;
  });
  if (memory.size() > 0 && !device.is_cpu() && known == queued_.end()) {
    queued_.emplace_back(device);
  }
}

Tensor HostSnapshot::host_tensor_like(const Tensor& source, PinnedBuffer& memory) {
  if (source.device().is_cpu() || source.numel() == 0 || !has_pinned_memory_) {
    return pageable_like(source);
  }
  try {
    PinnedTensor made = pinned_like(source);
    memory = std::move(made.memory);
    return std::move(made.tensor);
  } catch (const Error& error) {  // of a device that has failed, the copy says so
    has_pinned_memory_ = false;
    warn(
        text("trainer: the copies of the state for asynchronous saves are not all in pinned "
             "memory, and steps wait for the others (",
             error.what(), ")"));
    return pageable_like(source);
  }
}

void HostSnapshot::arrive() const {
  for (const binade::Event& event : queued_) {
    wait_for(event);
  }
}

const StateParts& HostSnapshot::parts() const {
  arrive();
  return parts_;
}

}  // namespace binade::train
