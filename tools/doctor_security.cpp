// binade doctor --security: shows at which addresses ranks listen, where their secret comes from,
// and who may change the files. It prints no secret.
#include "commands.h"

#include <arpa/inet.h>
#include <binade/dist/job/control_internal.h>
#include <binade/dist/job/network_policy_internal.h>
#include <binade/kernels/base/printable.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace binade::tool {
namespace {

namespace fs = std::filesystem;
using dist::ProcessInfo;

class Report {
 public:
  void good(const char* name, const std::string& value) { line("", name, value); }
  void unsafe(const char* name, const std::string& value) {
    line("UNSAFE: ", name, value);
    ++faults_;
  }
  int status() const { return faults_ == 0 ? 0 : 1; }

 private:
  static void line(const char* mark, const char* name, const std::string& value) {
    std::printf("%-14s %s%s\n", name, mark, printable(value).c_str());
  }
  int faults_ = 0;
};

dist::Environment environment_in(const std::map<std::string, std::string>& variables) {
  return [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::map<std::string, std::string> variables_of(const fs::path& process) {
  std::map<std::string, std::string> variables;
  std::istringstream all(contents(process / "environ"));
  for (std::string one; std::getline(all, one, '\0');) {
    const size_t equals = one.find('=');
    variables[one.substr(0, equals)] = equals == one.npos ? "" : one.substr(equals + 1);
  }
  return variables;
}

// A process is a rank if it has a thread with the name that serves the control channel.
bool is_rank(const fs::path& process) {
  std::error_code error;
  for (const auto& task : fs::directory_iterator(process / "task", error)) {
    if (contents(task.path() / "comm").starts_with(dist::kControlThread)) {
      return true;
    }
  }
  return false;
}

std::set<std::string> socket_inodes(const fs::path& process) {
  std::set<std::string> inodes;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(process / "fd", error)) {
    const std::string target = fs::read_symlink(file.path(), error).string();
    if (target.starts_with("socket:[")) {
      inodes.insert(target.substr(8, target.size() - 9));
    }
  }
  return inodes;
}

struct Listening {
  std::string address;
  int port;
};

// Reads /proc/PID/net/tcp: "sl local_address rem_address st ... uid timeout inode".
std::vector<Listening> listening_sockets(const fs::path& process) {
  const std::set<std::string> inodes = socket_inodes(process);
  std::istringstream lines(contents(process / "net/tcp"));
  std::vector<Listening> found;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<std::string> word;
    for (std::string one; words >> one;) {
      word.push_back(one);
    }
    if (word.size() < 10 || word[3] != "0A" || !inodes.contains(word[9])) {
      continue;
    }
    const in_addr address{static_cast<in_addr_t>(std::strtoul(word[1].c_str(), nullptr, 16))};
    char name[INET_ADDRSTRLEN] = "";
    ::inet_ntop(AF_INET, &address, name, sizeof name);
    const auto port = std::strtol(word[1].substr(word[1].find(':') + 1).c_str(), nullptr, 16);
    found.push_back({name, static_cast<int>(port)});
  }
  return found;
}

void report_process(Report& report, const fs::path& process) {
  const auto variables = variables_of(process);
  const bool has_secret =
      variables.contains("BINADE_SECRET") || variables.contains("BINADE_SECRET_FILE");
  ProcessInfo info;
  try {
    info = dist::discover(environment_in(variables));
  } catch (const Error&) {  // an unreadable environment: the rank stays unknown
  }
  const std::string who =
      text("rank ", info.rank, " of ", info.size, " (pid ", process.filename().string(), ")");
  for (const Listening& at : listening_sockets(process)) {
    const std::string line = text(who, " at ", at.address, " port ", at.port);
    if (dist::is_loopback(at.address)) {
      report.good("listening", line);
    } else if (at.address == "0.0.0.0") {
      report.unsafe("listening", line + ", which is every address of this machine");
    } else if (!has_secret) {
      report.unsafe("listening", line + ", off the loopback interface and without a secret");
    } else {
      report.good("listening", line + ", with a secret");
    }
  }
}

void report_running(Report& report) {
  int ranks = 0;
  std::error_code error;
  for (const auto& process : fs::directory_iterator("/proc", error)) {
    const std::string name = process.path().filename();
    if (std::isdigit(static_cast<unsigned char>(name[0])) != 0 && is_rank(process.path())) {
      report_process(report, process.path());
      ++ranks;
    }
  }
  if (ranks == 0) {
    report.good("listening", "no rank of this user runs here");
  }
}

// Reports which secret and addresses a rank would use with this environment.
void report_policy(Report& report) {
  const auto environment = [](const char* name) { return std::getenv(name); };
  dist::JobSecret secret;
  try {
    secret = dist::find_secret(environment);
    report.good("secret", secret.bytes.empty()
                              ? std::string("none set; binade launch, and mpirun on one machine, "
                                            "make one for each job")
                              : text(secret.source.substr(0, secret.source.find('=')), ": ",
                                     secret.bytes.size(), " bytes, nobody else may read it"));
  } catch (const Error& error) {
    report.unsafe("secret", error.what());
  }
  try {
    ProcessInfo process = dist::discover(environment);
    report.good("started by", text(dist::to_string(process.launcher), ", rank ", process.rank,
                                   " of ", process.size));
    if (process.size == 1) {
      return report.good("would listen", "nowhere: one process");
    }
    if (process.address.empty()) {
      process.address = "127.0.0.1";
    }
    const std::string address = process.rank == 0 ? dist::meeting_address(process)
                                : process.listen.empty()
                                    ? dist::numeric_address(process.address)
                                    : dist::address_of_interface(process.listen);
    dist::check_may_listen(address, secret, process);
    const std::string source =
        process.listen.empty() ? "BINADE_LISTEN names another" : "BINADE_LISTEN=" + process.listen;
    report.good("would listen", text("at ", address, " only (", source, ")"));
    if (dist::is_loopback(address) && secret.bytes.empty() && process.size > 1 &&
        process.launcher != dist::Launcher::open_mpi) {
      report.good("note", "without a secret other users of this machine can disturb the job");
    }
  } catch (const Error& error) {
    report.unsafe("would listen", error.what());
  }
}

void report_directory(Report& report, const std::string& path) {
  struct stat about {};
  const int code = ::stat(path.c_str(), &about) != 0 ? errno : 0;
  if (code != 0 || !S_ISDIR(about.st_mode)) {
    report.unsafe("run directory",
                  text(path, ": ", code != 0 ? std::strerror(code) : "it is no directory"));
    return;
  }
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", about.st_mode & 07777U);
  const std::string line = text(path, ": mode ", static_cast<const char*>(mode));
  if (about.st_uid != ::geteuid()) {
    report.unsafe("run directory", text(line, ", it belongs to user ", about.st_uid));
  } else if ((about.st_mode & 022) != 0) {
    report.unsafe("run directory", line + ", others may change it; chmod go-w");
  } else {
    report.good("run directory", line);
  }
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(path, error)) {
    struct stat file {};
    const std::string name = entry.path();
    if (::lstat(name.c_str(), &file) == 0 && !S_ISLNK(file.st_mode) && (file.st_mode & 002) != 0) {
      report.unsafe("run directory", name + ": everybody may change it");
    }
  }
}

}  // namespace

int run_security_doctor(const std::string& run_directory) {
  Report report;
  report_policy(report);
  report.good("connections", "both ends prove to know the secret; the data is not encrypted");
  report_running(report);
  if (!run_directory.empty()) {
    report_directory(report, run_directory);
  }
  return report.status();
}

}  // namespace binade::tool
