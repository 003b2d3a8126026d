#include <binade/core/autograd/autograd.h>
#include <binade/core/device/device_memory.h>
#include <binade/core/io/crc32c.h>
#include <binade/core/observe/timeline.h>
#include <binade/core/tensor/create.h>
#include <binade/dist/collective/communicator.h>
#include <binade/dist/transport/nccl_transport.h>

#include <algorithm>
#include <tuple>

namespace binade::dist {
namespace {

// The message that a rank sends to the next one before a collective.
struct Header {
  uint64_t sequence;
  Signature signature;
  bool operator==(const Header&) const = default;
};

// x as contiguous memory that the transport can access: x itself, or a copy.
Tensor within_reach(const Transport& transport, const Tensor& x) {
  return x.detach().to(transport.device()).contiguous();
}

void write_back(const Tensor& values, const Tensor& x) {
  if (values.view().data == x.view().data) {
    x.bump_version();
  } else {
    const NoGradGuard guard;
    x.detach().copy_(values);
  }
}

void check_reducible(const char* what, const Tensor& x) {
  check(x.defined(), what, ": got an undefined tensor");
  check(is_floating(x.dtype()) || x.dtype() == DType::i64 || x.dtype() == DType::i32, what,
        ": got dtype ", x.dtype(), ", expected f64, f32, f16, bf16, i64 or i32");
}

uint8_t variant(const AllReduceOptions& options) {
  return static_cast<uint8_t>((options.f32_carry ? 1 : 0) |
                              (options.algorithm == Algorithm::library ? 2 : 0));
}

// A hash of the ranges, so that ranks with different ranges have different signatures.
int32_t digest(std::span<const int64_t> bounds) {
  return static_cast<int32_t>(crc32c(std::as_bytes(bounds)));
}

Dims with_front(int64_t front, const Dims& rest) {
  Dims sizes{front};
  for (const int64_t size : rest) {
    sizes.push_back(size);
  }
  return sizes;
}

}  // namespace

Communicator::Communicator(std::shared_ptr<Transport> transport, std::shared_ptr<Health> health,
                           const CommunicatorOptions& options, std::string name)
    : transport_(std::move(transport)),
      health_(std::move(health)),
      options_(options),
      name_(std::move(name)) {
  health_->watch(transport_);
}

void Communicator::end(const std::string& cause) { throw CollectiveError(health_->report(cause)); }

template <class F>
void Communicator::run(const Signature& signature, F&& body) {
  TimelineSpan span(Activity::collectives, TimelineEvent::collective,
                    to_string(signature.collective));
  const uint64_t sent = span.is_recorded() ? bytes_sent() : 0;
  Progress& progress = health_->progress();
  progress.enter(name_, ++sequence_, signature);
  const auto describe = [&](const char* reason) {
    return text("rank ", rank(), " could not finish #", sequence_, " ", to_string(signature), ": ",
                reason);
  };
  try {
    const double timeout = sequence_ == 1 ? options_.first_timeout : options_.timeout;
    transport_->set_timeout(timeout);
    if (device_transport_) {
      device_transport_->set_timeout(timeout);
    }
    {
      // A rank that comes first waits here for the rank before it.
      const TimelineSpan waits(Activity::collectives, TimelineEvent::wait, "wait for other ranks");
      compare_signatures(signature);
    }
    body();
    if (span.is_recorded()) {
      span.set_bytes(static_cast<double>(bytes_sent() - sent));
    }
  } catch (const TransportError& error) {
    end(describe(error.what()));
  } catch (const CollectiveError&) {
    throw;  // keep where the rank was when the job ended
  } catch (...) {
    progress.leave();
    throw;
  }
  progress.leave();
}

void Communicator::compare_signatures(const Signature& signature) {
  const int n = size(), before = (rank() + n - 1) % n;
  if (n == 1) {
    return;
  }
  const Header mine{sequence_, signature};
  Header theirs{};
  transport_->group_start();
  transport_->send((rank() + 1) % n, &mine, sizeof mine);
  transport_->receive(before, &theirs, sizeof theirs);
  transport_->wait(transport_->group_end());
  if (mine != theirs) {
    end(text("ranks call different collectives: rank ", rank(), " #", mine.sequence, " ",
             to_string(mine.signature), ", rank ", before, " #", theirs.sequence, " ",
             is_valid(theirs.signature) ? to_string(theirs.signature) : "an unknown one"));
  }
}

void Communicator::all_reduce(const Tensor& x, ReduceOp op, const AllReduceOptions& options) {
  check_reducible("all_reduce", x);
  Transport& transport = carrier(x);
  const Tensor values = within_reach(transport, x);
  run({.collective = Collective::all_reduce,
       .dtype = x.dtype(),
       .op = op,
       .variant = variant(options),
       .count = x.numel(),
       .piece = options.piece_bytes},
      [&] {
        if (options.algorithm == Algorithm::library) {
          transport.library_all_reduce(values, op);
        } else {
          ring_all_reduce(transport, values, op,
                          {.f32_carry = options.f32_carry, .piece_bytes = options.piece_bytes});
        }
      });
  write_back(values, x);
}

void Communicator::broadcast(const Tensor& x, int root) {
  check(x.defined(), "broadcast: got an undefined tensor");
  check(root >= 0 && root < size(), "broadcast: got root ", root, ", expected a rank of 0 .. ",
        size() - 1);
  Transport& transport = carrier(x);
  const Tensor values = within_reach(transport, x);
  run({.collective = Collective::broadcast, .dtype = x.dtype(), .root = root, .count = x.numel()},
      [&] { ring_broadcast(transport, values, root); });
  write_back(values, x);
}

Tensor Communicator::all_gather(const Tensor& x) {
  check(x.defined(), "all_gather: got an undefined tensor");
  Transport& transport = carrier(x);
  const Tensor values = within_reach(transport, x),
               all = empty(with_front(size(), x.sizes()), x.dtype(), transport.device());
  run({.collective = Collective::all_gather, .dtype = x.dtype(), .count = x.numel()},
      [&] { ring_all_gather(transport, values, all); });
  return all.to(x.device());
}

void Communicator::scatter(const Tensor& all, const Tensor& part, int root) {
  move_parts(Collective::scatter, all, part, root);
}

void Communicator::gather(const Tensor& part, const Tensor& all, int root) {
  move_parts(Collective::gather, all, part, root);
}

// Transfers directly between the root and every other rank.
void Communicator::move_parts(Collective collective, const Tensor& all, const Tensor& part,
                              int root) {
  const char* what = to_string(collective);
  const bool outwards = collective == Collective::scatter, is_root = rank() == root;
  check(part.defined() && (!is_root || all.defined()), what, ": got an undefined tensor");
  check(root >= 0 && root < size(), what, ": got root ", root, ", expected a rank of 0 .. ",
        size() - 1);
  check(!is_root || (all.dtype() == part.dtype() && all.numel() == size() * part.numel()), what,
        ": got ", is_root ? all.numel() : 0, " elements for ", size(), " parts of ", part.numel(),
        ", expected ", size() * part.numel(), " of the same dtype");
  Transport& transport = carrier(part);
  const Tensor own = within_reach(transport, part),
               whole = is_root ? within_reach(transport, all) : Tensor();
  const auto bytes = static_cast<size_t>(part.numel()) * size_of(part.dtype());
  run({.collective = collective, .dtype = part.dtype(), .root = root, .count = part.numel()}, [&] {
    transport.group_start();
    if (!is_root) {
      outwards ? transport.receive(root, own.view().data, bytes)
               : transport.send(root, own.view().data, bytes);
    }
    for (int peer = 0; is_root && peer < size(); ++peer) {
      std::byte* at = whole.view().data + static_cast<size_t>(peer) * bytes;
      if (peer == root) {
        const Device device = transport.device();
        outwards ? device_copy(own.view().data, device, at, device, bytes)
                 : device_copy(at, device, own.view().data, device, bytes);
      } else {
        outwards ? transport.send(peer, at, bytes) : transport.receive(peer, at, bytes);
      }
    }
    transport.wait(transport.group_end());
  });
  if (outwards) {
    write_back(own, part);
  } else if (is_root) {
    write_back(whole, all);
  }
}

Tensor Communicator::reduce_scatter(const Tensor& x, ReduceOp op, const AllReduceOptions& options) {
  check_reducible("reduce_scatter", x);
  check(x.dim() >= 1 && x.size(0) == size(), "reduce_scatter: got sizes ", x.sizes(),
        ", expected a first dimension of ", size(), ", the number of ranks");
  check(options.algorithm == Algorithm::ring, "reduce_scatter: only the ring does this");
  Dims sizes;
  for (int i = 1; i < x.dim(); ++i) {
    sizes.push_back(x.size(i));
  }
  Transport& transport = carrier(x);
  const Tensor values = within_reach(transport, x),
               part = empty(sizes, x.dtype(), transport.device());
  run({.collective = Collective::reduce_scatter,
       .dtype = x.dtype(),
       .op = op,
       .variant = variant(options),
       .count = x.numel(),
       .piece = options.piece_bytes},
      [&] {
        ring_reduce_scatter(transport, values, part, op,
                            {.f32_carry = options.f32_carry, .piece_bytes = options.piece_bytes});
      });
  return part.to(x.device());
}

void Communicator::reduce_scatter_ranges(const Tensor& x, std::span<const int64_t> bounds,
                                         ReduceOp op, const AllReduceOptions& options) {
  check_reducible("reduce_scatter", x);
  check(options.algorithm == Algorithm::ring, "reduce_scatter: only the ring does this");
  Transport& transport = carrier(x);
  const Tensor values = within_reach(transport, x);
  run({.collective = Collective::reduce_scatter,
       .dtype = x.dtype(),
       .op = op,
       .variant = variant(options),
       .root = digest(bounds),
       .count = x.numel(),
       .piece = options.piece_bytes},
      [&] {
        ring_reduce_scatter_ranges(
            transport, values, op,
            {.f32_carry = options.f32_carry, .piece_bytes = options.piece_bytes, .bounds = bounds});
      });
  write_back(values, x);
}

void Communicator::gather_ranges(const Tensor& x, std::span<const int64_t> bounds) {
  check(x.defined(), "all_gather: got an undefined tensor");
  Transport& transport = carrier(x);
  const Tensor values = within_reach(transport, x);
  run({.collective = Collective::all_gather,
       .dtype = x.dtype(),
       .root = digest(bounds),
       .count = x.numel()},
      [&] { ring_all_gather_ranges(transport, values, {.bounds = bounds}); });
  write_back(values, x);
}

// After step k every rank has heard of 2^k ranks (D. Hensgen, R. Finkel, U. Manber, "Two algorithms
// for barrier synchronization", 1988).
void Communicator::barrier() {
  run({.collective = Collective::barrier}, [&] {
    const int n = size();
    for (int distance = 1; distance < n; distance *= 2) {
      char out = 1, in = 0;
      transport_->group_start();
      transport_->send((rank() + distance) % n, &out, 1);
      transport_->receive((rank() + n - distance) % n, &in, 1);
      transport_->wait(transport_->group_end());
    }
  });
}

std::unique_ptr<Communicator> Communicator::split(int color, int key) {
  const Tensor mine = from_values({static_cast<double>(color), static_cast<double>(key)}, {2},
                                  DType::i64),
               all = empty({size(), 2}, DType::i64);
  run({.collective = Collective::split, .dtype = DType::i64, .count = 2},
      [&] { ring_all_gather(*transport_, mine, all); });
  if (color < 0) {
    return nullptr;
  }
  std::vector<std::tuple<int64_t, int>> chosen;  // key, rank
  for (int peer = 0; peer < size(); ++peer) {
    if (all.data<int64_t>()[2 * peer] == color) {
      chosen.emplace_back(all.data<int64_t>()[2 * peer + 1], peer);
    }
  }
  std::sort(chosen.begin(), chosen.end());
  std::vector<int> members;
  for (const auto& entry : chosen) {
    members.push_back(std::get<1>(entry));
  }
  auto part = std::make_unique<Communicator>(transport_->split(members), health_, options_,
                                             text("group ", color));
  if (device_transport_) {
    part->connect_devices(device_transport_->device());
  }
  return part;
}

void Communicator::connect_devices(Device device) {
  const std::string missing = size() > 1 ? nccl_missing() : std::string();
  const Tensor all = all_gather(full({1}, missing.empty() ? 1 : 0, DType::i64));
  for (int peer = 0; peer < size(); ++peer) {
    check(all.data<int64_t>()[peer] == 1, "connect_devices: rank ", peer, " has no NCCL",
          peer == rank() ? ": " + missing : std::string());
  }
  if (size() > 1) {
    run({.collective = Collective::connect}, [&] {
      device_transport_ = make_nccl_transport(transport_, device);
      health_->watch(device_transport_);
    });
  }
}

Transport& Communicator::carrier(const Tensor& x) const {
  const bool direct = device_transport_ && x.device() == device_transport_->device();
  return direct ? *device_transport_ : *transport_;
}

void Communicator::interrupt() noexcept {
  transport_->interrupt();
  if (device_transport_) {
    device_transport_->interrupt();
  }
}

uint64_t Communicator::bytes_sent() const {
  return transport_->bytes_sent() + (device_transport_ ? device_transport_->bytes_sent() : 0);
}

uint64_t Communicator::bytes_received() const {
  return transport_->bytes_received() +
         (device_transport_ ? device_transport_->bytes_received() : 0);
}

}  // namespace binade::dist
