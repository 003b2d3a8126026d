#include <binade/core/device/device_info.h>
#include <binade/core/tensor/create.h>
#include <binade/dist/job/control_internal.h>
#include <binade/dist/job/discovery_internal.h>
#include <binade/dist/job/network_policy_internal.h>
#include <binade/dist/job/process_exit_internal.h>
#include <binade/dist/job/world.h>
#include <binade/dist/transport/mpi_transport.h>
#include <binade/dist/transport/nccl_transport.h>
#include <binade/dist/transport/tcp_transport_internal.h>
#include <binade/dist/transport/thread_transport.h>
#include <binade/kernels/base/control_group.h>
#include <binade/kernels/base/parallel.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>

namespace binade::dist {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

double seconds_in(const char* name, double otherwise) {
  const std::string value = variable(name);
  if (value.empty()) {
    return otherwise;
  }
  char* end = nullptr;
  const double seconds = std::strtod(value.c_str(), &end);
  check(*end == 0 && seconds > 0, "world: got ", name, "='", value, "', expected seconds above 0");
  return seconds;
}

// The health of a world of one: there is no other rank to inform.
class SingleRankHealth final : public Health {
 public:
  std::string report(const std::string& cause) override { return cause; }
  std::string verdict() const override { return {}; }
};

void share_cores(int local_size) {
  const kernels::UsableCores cores = kernels::usable_cores();
  const bool bound = kernels::threads() < cores.count ||
                     cores.in_mask < static_cast<int>(std::thread::hardware_concurrency());
  if (local_size > 1 && !bound && variable("OMP_NUM_THREADS").empty()) {
    kernels::set_threads(std::max(1, kernels::threads() / local_size));
  }
}

bool wants_mpi(const ProcessInfo& p) {
  const std::string wanted = variable("BINADE_TRANSPORT");
  check(wanted.empty() || wanted == "mpi" || wanted == "tcp", "world: got BINADE_TRANSPORT='",
        wanted, "', expected mpi or tcp");
  return wanted.empty() ? p.launcher == Launcher::open_mpi : wanted == "mpi";
}

#if defined(BINADE_WITH_CUDA) && !defined(BINADE_HOST_EXECUTION)
constexpr bool kForGpus = true;
#else
constexpr bool kForGpus = false;
#endif

// The device of a process, and whether no other process of its machine uses it. NCCL rejects two
// processes on one device, unless NCCL_HOSTID says that they are on two machines.
struct OwnDevice {
  Device device = Device::best();
  bool alone = true;
};

OwnDevice own_device(const ProcessInfo& p) {
  OwnDevice own;
  if (!own.device.is_cpu()) {
    const auto count = std::max(1, static_cast<int>(device_report().devices.size()));
    own.device.index = static_cast<int8_t>(p.local_rank % count);
    own.alone = p.local_size <= count || !variable("NCCL_HOSTID").empty();
  }
  return own;
}

// Rank 0 sends this over MPI: the address of the control channel and, if rank 0 made one, the
// secret, which then does not leave the machine.
struct WorldMeeting {
  char address[64] = "";
  char secret[72] = "";
  int port = 0;
};

const char* environment(const char* name) { return std::getenv(name); }

// The socket that the launcher opened for rank 0.
Socket inherited_listener(const std::string& number) {
  char* end = nullptr;
  const long file = std::strtol(number.c_str(), &end, 10);
  check(*end == 0 && file > STDERR_FILENO && file <= INT_MAX, "world: got BINADE_LISTEN_FD='",
        number, "', expected a file number");
  Socket listener(static_cast<int>(file));
  check(listener.is_listening(), "world: got BINADE_LISTEN_FD=", file,
        ", which is no listening socket; unset it");
  ::fcntl(listener.file(), F_SETFD, FD_CLOEXEC);
  return listener;
}

}  // namespace

struct World::State {
  ~State() { end(); }
  void start(const WorldOptions& options);
  void start_over_mpi(const ControlOptions& control);
  void start_over_tcp(const ControlOptions& control);
  void join(const ControlAddress& address, const ListenForData& listen,
            const ControlOptions& control);
  void connect_devices();
  void end() noexcept;

  ProcessInfo placement;
  bool mpi = false;
  int exceptions = std::uncaught_exceptions();
  // The client watches while the server waits, so it is destroyed last.
  std::shared_ptr<Health> health;
  ControlClient* client = nullptr;
  std::unique_ptr<ControlServer> server;
  std::shared_ptr<Transport> transport;
  std::unique_ptr<Communicator> communicator;
};

void World::State::start(const WorldOptions& options) {
  placement = discover();
  share_cores(placement.local_size);
  CommunicatorOptions collectives = options.collectives;
  collectives.timeout = seconds_in("BINADE_TIMEOUT", collectives.timeout);
  collectives.first_timeout = seconds_in("BINADE_TIMEOUT", collectives.first_timeout);
  if (const std::string link = variable("BINADE_LINK_DELAY"); !link.empty()) {
    collectives.link = parse_link_delay(link);
  }
  const ControlOptions control{
      .rendezvous_seconds = seconds_in("BINADE_RENDEZVOUS_TIMEOUT",
                                       seconds_in("BINADE_TIMEOUT", options.rendezvous_seconds)),
      .late_seconds = collectives.timeout,
      .grace_seconds = options.grace_seconds};
  mpi = placement.size > 1 && wants_mpi(placement);
  if (mpi) {
    start_over_mpi(control);
  } else if (placement.size > 1) {
    start_over_tcp(control);
  } else {
    health = std::make_shared<SingleRankHealth>();
    transport = make_thread_transport(make_thread_hub(1), 0);
  }
  transport = with_delay(std::move(transport), collectives.link);
  communicator = std::make_unique<Communicator>(transport, health, collectives);
  connect_devices();
}

void World::State::start_over_mpi(const ControlOptions& control) {
  transport = make_mpi_transport();
  delay_termination();
  check(transport->size() == placement.size && transport->rank() == placement.rank,
        "world: the launcher says rank ", placement.rank, " of ", placement.size,
        ", MPI says rank ", transport->rank(), " of ", transport->size());
  const bool same_machine = placement.local_size == placement.size;
  placement.address = same_machine && placement.listen.empty() ? "127.0.0.1" : host_name();
  JobSecret secret = find_secret(environment);
  WorldMeeting meeting;
  if (placement.rank == 0) {
    const std::string address = meeting_address(placement, control.rendezvous_seconds);
    if (same_machine && secret.bytes.empty()) {
      put_text(meeting.secret, new_secret());
      secret.bytes = meeting.secret;
    }
    check_may_listen(address, secret, placement);
    Socket listener = listen_at(address, placement.port);
    put_text(meeting.address, address);
    meeting.port = placement.port = listener.port();
    server = std::make_unique<ControlServer>(std::move(listener), placement.size,
                                             job_key(secret, placement), control);
  }
  transport->set_timeout(control.rendezvous_seconds);
  ring_broadcast(*transport, view_of(&meeting, DType::u8, {static_cast<int64_t>(sizeof meeting)}),
                 0);
  placement.port = meeting.port;
  if (secret.bytes.empty()) {
    secret.bytes = std::string(meeting.secret, strnlen(meeting.secret, sizeof meeting.secret));
  }
  join({.host = meeting.address, .port = meeting.port, .key = job_key(secret, placement)}, {},
       control);
}

void World::State::join(const ControlAddress& address, const ListenForData& listen,
                        const ControlOptions& control) {
  auto joined =
      std::make_shared<ControlClient>(address, placement.rank, placement.size, listen, control);
  client = joined.get();
  health = std::move(joined);
}

void World::State::start_over_tcp(const ControlOptions& control) {
  const ProcessInfo& p = placement;
  check(
      !p.address.empty(), "world: ", to_string(p.launcher),
      " gives no address to meet at; set BINADE_ADDRESS and BINADE_PORT, or use a build with MPI");
  const JobSecret secret = find_secret(environment);
  const Key key = job_key(secret, p);
  if (p.rank == 0) {
    const std::string file = variable("BINADE_LISTEN_FD");
    Socket listener = file.empty()
                          ? listen_at(meeting_address(p, control.rendezvous_seconds), p.port)
                          : inherited_listener(file);
    check_may_listen(listener.address(), secret, p);
    server = std::make_unique<ControlServer>(std::move(listener), p.size, key, control);
  }
  Socket data;
  const auto listen = [&](const std::string& own_address) {
    const std::string address = data_address(p, own_address);
    check_may_listen(address, secret, p);
    data = listen_at(address, 0);
    return DataAddress{address, data.port()};
  };
  join({.host = p.address, .port = p.port, .key = key}, listen, control);
  transport = make_tcp_transport(p.rank, client->roster(), std::move(data), client->data_key());
}

// Connects by NCCL if every rank has it and agrees.
void World::State::connect_devices() {
  const std::string wanted = variable("BINADE_NCCL");
  check(wanted.empty() || wanted == "auto" || wanted == "on" || wanted == "off",
        "world: got BINADE_NCCL='", wanted, "', expected auto, on or off");
  if (placement.size == 1 || wanted == "off" || (!kForGpus && wanted != "on")) {
    return;
  }
  const OwnDevice own = own_device(placement);
  const bool usable =
      !own.device.is_cpu() && own.alone && (wanted == "on" || nccl_missing().empty());
  const Tensor all = communicator->all_gather(full({1}, usable, DType::i64));
  for (int rank = 0; rank < placement.size; ++rank) {
    if (all.data<int64_t>()[rank] == 0) {
      check(wanted != "on", "world: BINADE_NCCL=on, but rank ", rank, " has no GPU of its own");
      return;
    }
  }
  communicator->connect_devices(own.device);
}

void World::State::end() noexcept {
  const bool failed = std::uncaught_exceptions() > exceptions;
  if (client) {
    if (failed && client->verdict().empty()) {
      client->report(text("rank ", placement.rank, " ends with an exception"));
    }
    client->say_goodbye();
  }
  const bool well = !failed && (!client || client->verdict().empty());
  communicator.reset();
  transport.reset();
  if (mpi && well) {
    finish_mpi();
  }
  const std::string verdict = server ? server->wait() : std::string();
  if (well && !verdict.empty()) {  // a rank died or was stuck after this one's last collective
    std::fflush(nullptr);
    end_process(kJobFailed, text("binade: error: ", verdict, "\n"));
  }
  server.reset();
  health.reset();
}

World::World(const WorldOptions& options) : state_(std::make_unique<State>()) {
  state_->start(options);
}

World::World(int, char**, const WorldOptions& options) : World(options) {}

World::~World() = default;

Communicator& World::communicator() { return *state_->communicator; }
int World::rank() const { return state_->placement.rank; }
int World::size() const { return state_->placement.size; }
int World::local_rank() const { return state_->placement.local_rank; }
int World::local_size() const { return state_->placement.local_size; }

Device World::device() const { return own_device(state_->placement).device; }

std::unique_ptr<Communicator> World::split(int color, int key) {
  return communicator().split(color, key);
}

void World::log(std::string_view line) const {
  const std::string ranks = "," + variable("BINADE_LOG_RANKS") + ",";
  const bool wanted = ranks == ",all," || ranks.find(text(",", rank(), ",")) != ranks.npos;
  if (is_root() || wanted) {
    const std::string front = ranks == ",," ? std::string() : text("[rank ", rank(), "] ");
    std::printf("%s%.*s\n", front.c_str(), static_cast<int>(line.size()), line.data());
    std::fflush(stdout);
  }
}

}  // namespace binade::dist
