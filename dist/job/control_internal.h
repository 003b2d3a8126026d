// The control channel of a job of processes: a connection from every rank to a server in rank 0,
// separate from the data. It brings the ranks together (rendezvous) and watches them: if a rank
// dies, leaves too early, is late or reports a failure, the job ends on all ranks with the same
// text.
//
// The server and each client have their own threads, so they answer while the program computes or
// waits. Connections begin with a handshake (dist/transport/handshake_internal.h), messages have
// bounded sizes, and every wait ends. When all ranks have joined, the server accepts no
// further connection.
#pragma once
#include <binade/dist/job/health.h>
#include <binade/dist/transport/handshake_internal.h>
#include <binade/dist/transport/roster_internal.h>

#include <functional>

namespace binade::dist {

// Name of the threads of the server and the clients.
inline constexpr const char* kControlThread = "binade-control";

struct ControlOptions {
  double rendezvous_seconds = 60;  // limit until all ranks have joined
  // Limit of a library's collective, which no transport watches, and for the ranks to leave after
  // rank 0.
  double late_seconds = 60;
  double grace_seconds = 3;  // after a failure a process has this long to end on its own
};

// Where the server listens, and the key of the job.
struct ControlAddress {
  std::string host;
  int port;
  Key key;
};

class ControlServer {
 public:
  ControlServer(Socket listener, int size, const Key& key, const ControlOptions& options);
  ~ControlServer();  // waits, see wait()
  int port() const;
  // Waits until every rank has said goodbye or the job has failed. Returns the text of the failure,
  // else an empty text.
  std::string wait();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Where a rank listens for data; "-": nowhere.
struct DataAddress {
  std::string address = "-";
  int port = 0;
};
// Begins to listen for data, given the address of this end of the connection to rank 0.
using ListenForData = std::function<DataAddress(const std::string& own_address)>;

class ControlClient final : public Health {
 public:
  // Joins the job as `rank`; returns when all ranks have joined. Throws Error after
  // rendezvous_seconds, with the missing ranks.
  ControlClient(const ControlAddress& server, int rank, int size, const ListenForData& listen,
                const ControlOptions& options);
  ~ControlClient() override;

  const Roster& roster() const;
  // The key of the connections for data. It differs in every job, also if the secret is the same.
  const Key& data_key() const;
  std::string report(const std::string& cause) override;
  std::string verdict() const override;
  // Tells the job that this rank needs no other any more. A failure of the job still ends the
  // process until the client is destroyed.
  void say_goodbye();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace binade::dist
