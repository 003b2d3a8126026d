// The tensors that a backward keeps (Saved) and the memory it writes (Needs).
#include <binade/core/autograd/autograd.h>
#include <binade/core/autograd/backward_run_internal.h>
#include <binade/core/observe/observer.h>

namespace binade {

// saved tensors -----------------------------------------------------------------------------------

namespace {
std::atomic<int64_t> live_saved_bytes{0}, peak_saved_bytes{0};
}

void Saved::hold(const Tensor& t) {
  data_ = t.detach();
  history_ = t.history().get();
  version_ = t.version();
  counted_ = !(history_ && history_->leaf);  // parameters stay in memory anyway
  Storage& storage = *data_.handle()->storage;
  if (counted_ && detail::count_up(storage.saves) == 0) {
    const auto bytes = static_cast<int64_t>(storage.bytes);
    const int64_t live = detail::count_up(live_saved_bytes, bytes) + bytes;
    int64_t peak = peak_saved_bytes.load(std::memory_order_relaxed);
    while (live > peak &&
           !peak_saved_bytes.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
    }
  }
}

void Saved::drop_held() noexcept {
  if (std::exchange(counted_, false)) {
    Storage& storage = *data_.handle()->storage;
    if (detail::count_down(storage.saves) == 1) {
      detail::count_down(live_saved_bytes, static_cast<int64_t>(storage.bytes));
    }
  }
  const Tensor gone = std::move(data_);
}

Saved& Saved::operator=(Saved&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(history_, other.history_);
  std::swap(version_, other.version_);
  std::swap(counted_, other.counted_);
  return *this;
}

const Tensor& Saved::get(const Node& node) const {
  if (!data_.defined()) {
    return data_;  // absent, or not wanted by any gradient
  }
  check(data_.version() == version_, node.name(),
        ": a tensor saved for backward was changed in place (version ", data_.version(),
        ", expected ", version_, "); change it after backward, or use a functional op");
  BackwardRun* run = detail::thread_state.run;
  if (!grad_enabled() || !run) {
    return data_;
  }
  // The backward itself is being recorded: the value gets its history again.
  if (!history_) {
    return node.output == data_.handle().get()
               ? run->keep(Tensor(data_.handle(), Ref<Node>::share(const_cast<Node*>(&node))))
               : data_;
  }
  for (int i = 0; i < node.edge_count; ++i) {
    if (node.edges[i].get() == history_) {
      return run->keep(Tensor(data_.handle(), node.edges[i].handle()));
    }
  }
  fail(node.name(), ": a saved tensor that has a history must be an input of the op");
}

SavedBytes saved_bytes() { return {live_saved_bytes.load(), peak_saved_bytes.load()}; }
void reset_peak_saved_bytes() { peak_saved_bytes.store(live_saved_bytes.load()); }

// needs -------------------------------------------------------------------------------------------

bool Needs::reaches(int i) const { return detail::thread_state.run->leads_to_input(*edges_[i]); }

Tensor Needs::direct(int i) const {
  const Node& to = *edges_[i];
  if (!to.leaf) {
    return {};
  }
  for (int k = 0; k < count_; ++k) {
    if (k != i && edges_[k].get() == &to) {
      return {};  // the same leaf twice in one op: both cannot write the same range
    }
  }
  return static_cast<const Leaf&>(to).destination();
}

Tensor Needs::out(int i) const {
  return (*this)[i] ? out_strided(i, row_major_strides(edges_[i]->sizes)) : Tensor();
}

Tensor Needs::out_strided(int i, const Dims& strides) const {
  if (!(*this)[i]) {
    return {};
  }
  Tensor place = direct(i);
  if (place.defined()) {
    return place;
  }
  const Node& to = *edges_[i];
  return strides.size() == to.sizes.size() && is_dense(to.sizes, strides)
             ? empty_strided(to.sizes, strides, to.dtype, to.device)
             : empty(to.sizes, to.dtype, to.device);
}

Tensor Needs::out_over(int i, const Tensor& dy) const {
  const bool free = (*this)[i] && dy.sole_owner() && !dy.requires_grad() &&
                    dy.sizes() == edges_[i]->sizes && dy.dtype() == edges_[i]->dtype &&
                    is_dense(dy.sizes(), dy.strides()) && !detail::observers_read_values() &&
                    !direct(i).defined();
  return free ? dy : out_like(i, dy);
}

}  // namespace binade
