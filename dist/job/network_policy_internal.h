// The rules for the addresses that a job listens at and for its secret. SECURITY.md explains
// them.
#pragma once
#include <binade/dist/job/discovery_internal.h>
#include <binade/dist/transport/handshake_internal.h>

#include <string>

namespace binade::dist {

inline constexpr size_t kLeastSecretBytes = 16;

struct JobSecret {
  std::string bytes = {};   // empty: there is none
  std::string source = {};  // "BINADE_SECRET", "BINADE_SECRET_FILE=PATH"; empty: there is none
};

// BINADE_SECRET, else the contents of the file BINADE_SECRET_FILE without the white space at its
// end. Throws Error if the secret is shorter than kLeastSecretBytes, or unless the file is a
// regular file of this user that no other user may read or write. Messages do not show the secret.
JobSecret find_secret(const Environment& environment);
// 64 hexadecimal digits that nobody can guess.
std::string new_secret();

// The key of a job, made from its secret and from data that differ between jobs with one secret.
Key job_key(const JobSecret& secret, const ProcessInfo& process);

// The numeric address at which rank 0 listens for the others: BINADE_LISTEN, else the address where
// they look for it. Throws Error if ranks on other machines cannot reach it, or if the name has no
// address after `seconds`.
std::string meeting_address(const ProcessInfo& process, double seconds = 10);
// The numeric address at which a rank listens for data: BINADE_LISTEN, else `own_address`, its end
// of the connection to rank 0.
std::string data_address(const ProcessInfo& process, const std::string& own_address);
// Throws Error if there is no secret and the numeric address is not of the loopback interface.
void check_may_listen(const std::string& address, const JobSecret& secret,
                      const ProcessInfo& process);

}  // namespace binade::dist
