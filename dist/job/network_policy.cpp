#include <binade/dist/job/network_policy_internal.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace binade::dist {
namespace {

constexpr const char* kHowToMake =
    "make one with: (umask 077; head -c 32 /dev/urandom | base64 > FILE), and set "
    "BINADE_SECRET_FILE=FILE for every rank";

std::string value_in(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value ? value : "";
}

// The reason why a file must not hold a secret; empty if it may.
std::string fault_of(int file) {
  struct stat about {};
  if (file < 0 || ::fstat(file, &about) != 0) {
    return std::strerror(errno);
  }
  if (!S_ISREG(about.st_mode)) {
    return "it is no regular file";
  }
  if (about.st_uid != ::geteuid()) {
    return text("it belongs to user ", about.st_uid, ", expected this user, ", ::geteuid());
  }
  const unsigned mode = about.st_mode & 07777;
  if ((mode & 077) != 0) {
    char digits[8];
    std::snprintf(digits, sizeof digits, "%04o", mode);
    return text("its mode is ", static_cast<const char*>(digits),
                ", expected 0600: others may read or write it; chmod 600 it, and make a new secret "
                "if they have read it");
  }
  return {};
}

std::string read_secret_file(const std::string& path) {
  constexpr size_t kMostBytes = 4096;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  const Socket owner(file);
  const std::string fault = fault_of(file);
  check(fault.empty(), "world: BINADE_SECRET_FILE=", path, ": ", fault);
  std::string bytes(kMostBytes + 1, 0);
  size_t size = 0;
  for (ssize_t got = 1; got > 0 && size < bytes.size(); size += static_cast<size_t>(got)) {
    got = ::read(file, bytes.data() + size, bytes.size() - size);
    check(got >= 0, "world: BINADE_SECRET_FILE=", path, ": ", std::strerror(errno));
  }
  check(size <= kMostBytes, "world: BINADE_SECRET_FILE=", path, ": got more than ", kMostBytes,
        " bytes");
  bytes.resize(size);
  bytes.erase(bytes.find_last_not_of(" \t\r\n") + 1);
  return bytes;
}

}  // namespace

JobSecret find_secret(const Environment& environment) {
  JobSecret secret{.bytes = value_in(environment, "BINADE_SECRET"), .source = "BINADE_SECRET"};
  if (secret.bytes.empty()) {
    const std::string path = value_in(environment, "BINADE_SECRET_FILE");
    if (path.empty()) {
      return {};
    }
    secret = {.bytes = read_secret_file(path), .source = "BINADE_SECRET_FILE=" + path};
  }
  check(secret.bytes.size() >= kLeastSecretBytes, "world: ", secret.source, " holds ",
        secret.bytes.size(), " bytes, expected ", kLeastSecretBytes, " or more random ones; ",
        kHowToMake);
  return secret;
}

std::string new_secret() {
  std::array<std::byte, 32> bytes{};
  fill_random(bytes);
  return hex(bytes);
}

Key job_key(const JobSecret& secret, const ProcessInfo& process) {
  return derive_key(secret.bytes, text("control ", process.job, " ", process.port));
}

std::string meeting_address(const ProcessInfo& process, double seconds) {
  std::string address = process.listen.empty() ? numeric_address(process.address, seconds)
                                               : address_of_interface(process.listen);
  check(process.local_size == process.size || !is_loopback(address), "world: rank 0 of ",
        process.size, " ranks on several machines would listen at ", address,
        ", where the others cannot reach it; set BINADE_LISTEN to the interface or address of this "
        "machine that they can reach, and BINADE_ADDRESS for all ranks");
  return address;
}

std::string data_address(const ProcessInfo& process, const std::string& own_address) {
  return process.listen.empty() ? own_address : address_of_interface(process.listen);
}

void check_may_listen(const std::string& address, const JobSecret& secret,
                      const ProcessInfo& process) {
  check(!secret.bytes.empty() || is_loopback(address), "world: ", to_string(process.launcher),
        " gives the ranks no secret, and they meet at ", address, ", off the loopback interface; ",
        kHowToMake);
}

}  // namespace binade::dist
