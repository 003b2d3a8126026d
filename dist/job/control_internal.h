// The control channel of a job of processes: a connection from every rank to a server in rank 0,
// separate from the data. It brings the ranks together (rendezvous) and watches them: if a rank
// dies, leaves too early, is late or reports a failure, the job ends on all ranks with the same
// text.
//
// The server and each client have their own threads, so they answer while the program computes or
// waits. Messages have bounded sizes; a connection that does not know the secret is rejected.
#pragma once
#include <binade/dist/job/health.h>
#include <binade/dist/transport/roster_internal.h>
#include <binade/dist/transport/socket_internal.h>

namespace binade::dist {

struct ControlOptions {
  double rendezvous_seconds = 60;  // for all ranks to come
  double late_seconds = 60;        // limit of a library's collective, which no transport watches
  double grace_seconds = 3;        // after a failure a process has this long to end on its own
};

// Where the server listens, and the secret that it asks for.
struct ControlAddress {
  std::string host;
  int port;
  std::string secret;
};

class ControlServer {
 public:
  ControlServer(Socket listener, int size, std::string secret, const ControlOptions& options);
  // Waits until every rank has said goodbye or the job has failed.
  ~ControlServer();
  int port() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

class ControlClient final : public Health {
 public:
  // Joins the job as `rank`, listening for data at data_port; returns when all ranks have joined.
  // Throws Error after rendezvous_seconds, with the missing ranks.
  ControlClient(const ControlAddress& server, int rank, int size, int data_port,
                const ControlOptions& options);
  ~ControlClient() override;

  const Roster& roster() const;
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
