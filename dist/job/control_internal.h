// The control channel of a job of processes: a connection of every rank to a server in rank 0,
// beside the data. It brings the ranks together (rendezvous) and watches them: a rank that dies,
// leaves too early, is late or reports a failure ends the job on all ranks with one text.
//
// The server and each rank's end have threads of their own, so they answer while the program
// computes or waits. Messages have bounded sizes; a connection that does not know the secret is
// turned away.
#pragma once
#include <binade/dist/job/health.h>
#include <binade/dist/transport/roster_internal.h>
#include <binade/dist/transport/socket_internal.h>

namespace binade::dist {

struct ControlOptions {
  double rendezvous_seconds = 60;  // for all ranks to come
  double late_seconds = 60;        // a library's collective may take, as no transport watches it
  double grace_seconds = 3;        // after a failure a process has this long to end by itself
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
  // Joins the job as `rank`, listening for data at data_port; returns when all ranks have. Throws
  // Error after rendezvous_seconds, with the ranks that did not come.
  ControlClient(const std::string& address, int port, int rank, int size, int data_port,
                const std::string& secret, const ControlOptions& options);
  ~ControlClient() override;

  const Roster& roster() const;
  std::string report(const std::string& cause) override;
  std::string verdict() const override;
  // Says that this rank needs no other any more. The job's failure still ends the process until
  // the client is destroyed.
  void say_goodbye();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace binade::dist
