// Compares outputs with the reference; issues say where they differ and, if known, why.
#include <binade/lab/driver/builds_internal.h>
#include <binade/lab/runner/wire.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace binade::lab {
namespace {

// One output of one run in one schedule.
struct Output {
  uint32_t run = 0;
  std::string schedule = {}, name = {}, bytes = {};
};
Output output_of(const Record& record) {
  WireReader in(record.payload);
  return {record.run, in.get<std::string>(), in.get<std::string>(), in.get<std::string>()};
}
std::vector<Output> outputs_of(const BuildResult& build) {
  std::vector<Output> outputs;
  for (const Record& record : build.records) {
    if (record.kind == RecordKind::outputs) {
      outputs.push_back(output_of(record));
    }
  }
  return outputs;
}

const ProblemArgument& argument_of(const ProblemRun& run, const std::string& name) {
  return *std::find_if(run.arguments.begin(), run.arguments.end(),
                       [&](const ProblemArgument& a) { return a.name == name; });
}

// The values of an output without the padding between rows.
Array values_of(const Output& output, const ProblemArgument& argument) {
  const Array all = from_bytes_of(output.bytes, argument.element);
  if (argument.row_pitch == 0) {
    return all;
  }
  Array values;
  for (size_t i = 0; i < all.size(); ++i) {
    if (static_cast<int64_t>(i) % argument.row_pitch < argument.row_elements) {
      values.push_back(all[i]);
    }
  }
  return values;
}

std::string numbers_text(const std::string& place, const Difference& difference) {
  return text("numbers: ", place, " = ", number_text(difference.got), ", expected ",
              number_text(difference.expected));
}

struct WrongRun {
  Output output = {};
  Difference difference = {};
};

class NumberCheck {
 public:
  NumberCheck(Report& report, const Evidence& evidence) : report_(report), evidence_(evidence) {}

  void run(const BuildResult& build) {
    std::map<std::pair<uint32_t, std::string>, std::string> first;  // outputs in the first schedule
    for (const Output& output : outputs_of(build)) {
      const auto [place, is_first] =
          first.emplace(std::pair(output.run, output.name), output.bytes);
      if (is_first || place->second != output.bytes) {
        compare_one(output);
      } else if (wrong_.contains({output.run, output.name})) {
        schedules_.insert(output.schedule);
      }
      report_.runs += 1;
    }
    find_cached(first);
    if (!list_.empty()) {
      report(build);
    }
  }

 private:
  void compare_one(const Output& output) {
    const PreparedRun& prepared = evidence_.runs[output.run];
    const auto expected = prepared.expected.find(output.name);
    if (expected == prepared.expected.end()) {
      return;
    }
    const ProblemArgument& argument = argument_of(prepared.run, output.name);
    const Difference d = compare(values_of(output, argument), expected->second, argument.element);
    if (d.worst > report_.worst_error) {
      report_.worst_error = d.worst;
      report_.worst_at = text(place(output, d.worst_at), " of ", prepared.run.shape, ", inputs ",
                              prepared.run.inputs);
    }
    if (d.wrong > 0) {
      wrong_.insert({output.run, output.name});
      schedules_.insert(output.schedule);
      shapes_.insert(prepared.run.shape);
      inputs_.insert(prepared.run.inputs);
      list_.push_back({output, d});
    }
  }
  std::string place(const Output& output, int64_t index) const {
    return place_of(*evidence_.of.find(output.name), evidence_.shapes_of_runs[output.run], index);
  }

  // Finds a call with other inputs that returned the same bits as the call before it.
  void find_cached(const std::map<std::pair<uint32_t, std::string>, std::string>& first) {
    for (const auto& [key, bytes] : first) {
      const ProblemRun& run = evidence_.runs[key.first].run;
      const auto before = key.first == 0 ? first.end() : first.find({key.first - 1, key.second});
      if (run.inputs == "second call" && wrong_.contains(key) && before != first.end() &&
          !wrong_.contains(before->first) && before->second == bytes) {
        Found found;
        found.kind = "cached output";
        found.gravity = Gravity::wrong;
        found.array = key.second;
        found.count = 1;
        report_.issues.push_back(
            {.found = found,
             .headline = "the second call with other inputs returned the first result",
             .details = {text("array ", key.second, ", shape ", run.shape,
                              ": solve() keeps results between calls")},
             .shapes = {run.shape},
             .inputs = {run.inputs},
             .builds = {"plain"}});
        return;
      }
    }
  }

  void report(const BuildResult& build) {
    const WrongRun& worst = list_.front();
    const PreparedRun& prepared = evidence_.runs[worst.output.run];
    Found found;
    found.kind = "wrong numbers";
    found.gravity = Gravity::wrong;
    found.array = worst.output.name;
    found.index = worst.difference.first;
    found.count = list_.size();
    Issue issue{.found = found, .shapes = shapes_, .inputs = inputs_, .builds = {"plain"}};
    issue.headline = numbers_text(place(worst.output, worst.difference.first), worst.difference);
    issue.details.push_back(text(worst.difference.wrong, " of ", worst.difference.total,
                                 " wrong in shape ", prepared.run.shape, ", inputs ",
                                 prepared.run.inputs, ", schedule ", worst.output.schedule));
    add_writer(issue);
    explain(build, worst, issue);
    report_.issues.push_back(std::move(issue));
  }

  // Adds the thread that wrote the first wrong element, as the race build recorded it.
  void add_writer(Issue& issue) const {
    const auto race = static_cast<size_t>(Build::race);
    for (const WrongRun& wrong : list_) {
      const ProblemRun& plain = evidence_.runs[wrong.output.run].run;
      for (const Record& record : evidence_.builds[race].records) {
        if (record.kind != RecordKind::writers) {
          continue;
        }
        const ProblemRun& run = evidence_.problems[race].runs[record.run];
        WireReader in(record.payload);
        if (run.shape != plain.shape || run.inputs != plain.inputs ||
            in.get<std::string>() != wrong.output.name) {
          continue;
        }
        WireReader whole(record.payload);
        const FoundWriters writers = read_writers(whole);
        const ProblemArgument& argument = argument_of(plain, wrong.output.name);
        const int64_t place =
            argument.row_pitch == 0
                ? wrong.difference.first
                : wrong.difference.first / argument.row_elements * argument.row_pitch +
                      wrong.difference.first % argument.row_elements;
        const FoundWriters::Writer& writer = writers.elements.at(static_cast<size_t>(place));
        if (writer.line == 0) {
          continue;
        }
        const FoundWriters::Line& line = writers.lines.at(writer.line - 1);
        const auto index = [](const uint32_t* at) {
          return text("(", at[0], ",", at[1], ",", at[2], ")");
        };
        FoundSide& side = issue.found.first;
        side = {.act = "writes",
                .past = "wrote",
                .file = line.file,
                .line = line.line,
                .block = index(writer.block),
                .thread = index(writer.thread)};
        issue.details.push_back(
            text("block ", side.block, " thread ", side.thread, " wrote ",
                 place_of(*evidence_.of.find(wrong.output.name),
                          evidence_.shapes_of_runs[wrong.output.run], wrong.difference.first),
                 " at ", place_text(line.file, line.line),
                 &wrong == &list_.front() ? std::string() : text(" in shape ", plain.shape)));
        return;
      }
    }
  }

  void explain(const BuildResult& build, const WrongRun& worst, Issue& issue) const {
    const ProblemArgument& argument =
        argument_of(evidence_.runs[worst.output.run].run, worst.output.name);
    const size_t bytes = bytes_of(argument.element);
    const size_t at = static_cast<size_t>(worst.difference.first) * bytes;
    if (argument.row_pitch == 0 && at + bytes <= worst.output.bytes.size() &&
        worst.output.bytes.substr(at, bytes) == std::string(bytes, '\xff')) {
      issue.details.push_back("the kernel did not write this element");
    }
    std::set<std::string> said;
    for (const Record& record : build.records) {
      if (record.kind != RecordKind::number || !wrong_.contains({record.run, worst.output.name})) {
        continue;
      }
      WireReader in(record.payload);
      const FoundNumber number = read_number(in);
      const std::string where = place_text(number.file, number.line);
      if (said.insert(number.event + where).second) {
        issue.details.push_back(
            number.event == "exp"
                ? text("exp overflows at ", where, ": exp(", number_text(number.value),
                       ") is infinite; block ", number.block, " thread ", number.thread,
                       "; subtract the maximum first")
                : text(number_text(number.value), " is more than ", number.event,
                       " holds (65504), at ", where, "; block ", number.block, " thread ",
                       number.thread, "; sum in float"));
      }
    }
    const double error = worst.difference.worst;
    const bool narrow = argument.element == Element::f16 || argument.element == Element::bf16;
    if (narrow && std::isfinite(error) && said.empty()) {
      issue.details.push_back(text("the largest error is ", number_text(error),
                                   " times what arithmetic in float gives; sum in float"));
    }
  }

  Report& report_;
  const Evidence& evidence_;
  std::vector<WrongRun> list_;
  std::set<std::pair<uint32_t, std::string>> wrong_;
  std::set<std::string> schedules_, shapes_, inputs_;
};

}  // namespace

std::string wrong_numbers_of(const Case& of, const PreparedRun& prepared, const Sizes& sizes,
                             const Record& record) {
  const Output output = output_of(record);
  const auto expected = prepared.expected.find(output.name);
  if (expected == prepared.expected.end()) {
    return {};
  }
  const ProblemArgument& argument = argument_of(prepared.run, output.name);
  const Difference d = compare(values_of(output, argument), expected->second, argument.element);
  return d.wrong == 0 ? std::string()
                      : numbers_text(place_of(*of.find(output.name), sizes, d.first), d);
}

void add_numbers(Report& report, const Evidence& evidence) {
  for (const BuildResult& build : evidence.builds) {
    if (build.build == Build::plain) {
      NumberCheck(report, evidence).run(build);
    }
  }
}

}  // namespace binade::lab
