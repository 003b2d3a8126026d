#include <bench/kernel_serve.h>
#include <binade/core/io/json_text.h>

#include <cstdio>
#include <fstream>
#include <istream>
#include <map>
#include <sstream>

namespace binade::bench {
namespace {

void answer(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

struct Served {
  Served(const CaseSettings& settings) : work(prepare(settings)), timer(work, settings.device) {}
  const Prepared work;
  Timer timer;
};

class Server {
 public:
  explicit Server(Device device) : device_(device) {}

  std::string reply(const std::string& request) {
    std::istringstream words(request);
    std::string verb, key;
    words >> verb >> key;
    if (verb == "prepare") {
      return prepare_case(key, words);
    }
    if (verb == "sample") {
      const auto found = cases_.find(key);
      check(found != cases_.end(), "sample: got '", key, "', expected the key of a prepared case");
      return text("{\"key\": ", json_quoted(key), ", \"seconds\": ", found->second.timer.sample(),
                  "}");
    }
    check(verb == "drop", "got '", request, "', expected prepare, sample or drop");
    const size_t count = cases_.size();
    cases_.clear();
    return text("{\"dropped\": ", count, "}");
  }

 private:
  std::string prepare_case(const std::string& key, std::istream& words) {
    CaseSettings settings;
    settings.device = device_;
    std::string dtype;
    words >> settings.kernel >> settings.rows >> settings.cols >> dtype;
    check(!words.fail(), "prepare: expected KEY KERNEL ROWS COLS DTYPE [PROVIDER]");
    settings.dtype = parse_floating(dtype, "prepare");
    words >> settings.provider;
    cases_.erase(key);
    const Served& made = cases_.try_emplace(key, settings).first->second;
    return text("{\"key\": ", json_quoted(key), ", \"bytes\": ", made.work.bytes,
                ", \"flops\": ", made.work.flops, ", \"calls\": ", made.timer.calls(), "}");
  }

  Device device_;
  std::map<std::string, Served> cases_;
};

CaseSettings parse_case(const std::string& line, const ListSettings& list) {
  std::istringstream words(line);
  CaseSettings settings;
  settings.device = list.device;
  int64_t small_rows = 0, small_cols = 0;
  words >> settings.kernel >> settings.rows >> settings.cols >> small_rows >> small_cols;
  check(!words.fail(), list.file, ": got '", line,
        "', expected kernel rows cols small_rows small_cols");
  if (list.small) {
    settings.rows = small_rows, settings.cols = small_cols;
  }
  return settings;
}

}  // namespace

int run_list(const ListSettings& list) {
  std::ifstream file(list.file);
  check(file.good(), "--cases: cannot read ", list.file);
  int failed = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') {
      continue;
    }
    CaseSettings settings = parse_case(line, list);
    for (const DType dtype : list.dtypes) {
      settings.dtype = dtype;
      try {
        answer(json_of(settings, measure(settings, list.samples)));
      } catch (const std::exception& error) {
        answer(text("{\"kernel\": ", json_quoted(settings.kernel), ", \"dtype\": \"", dtype,
                    "\", \"error\": ", json_quoted(error.what()), "}"));
        ++failed;
      }
    }
  }
  return failed;
}

void serve(std::istream& in, Device device) {
  Server server(device);
  for (std::string request; std::getline(in, request);) {
    try {
      answer(server.reply(request));
    } catch (const std::exception& error) {
      answer(text("{\"error\": ", json_quoted(error.what()), "}"));
    }
  }
}

}  // namespace binade::bench
