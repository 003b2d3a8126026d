#include <binade/lab/runner/problem.h>
#include <binade/lab/runner/wire.h>

namespace binade::lab {

std::string to_bytes(const Problem& problem) {
  WireWriter out;
  out.add(problem.step_limit).add(static_cast<uint64_t>(problem.runs.size()));
  for (const ProblemRun& run : problem.runs) {
    out.add(run.shape)
        .add(run.inputs)
        .add(run.schedules)
        .add(run.counts)
        .add(run.writers)
        .add(run.sampled_blocks);
    out.add(run.goes_on).add(run.part);
    out.add(static_cast<uint64_t>(run.arguments.size()));
    for (const ProblemArgument& a : run.arguments) {
      out.add(a.name).add(a.passing).add(a.element).add(a.is_output).add(a.count);
      out.add(a.row_elements).add(a.row_pitch).add(a.bytes);
    }
  }
  return out.bytes();
}

Problem problem_from(std::string_view bytes) {
  WireReader in(bytes);
  Problem problem;
  in.read(problem.step_limit);
  problem.runs.resize(in.get<uint64_t>());
  for (ProblemRun& run : problem.runs) {
    in.read(run.shape);
    in.read(run.inputs);
    in.read(run.schedules);
    in.read(run.counts);
    in.read(run.writers);
    in.read(run.sampled_blocks);
    in.read(run.goes_on);
    in.read(run.part);
    run.arguments.resize(in.get<uint64_t>());
    for (ProblemArgument& a : run.arguments) {
      in.read(a.name);
      in.read(a.passing);
      in.read(a.element);
      in.read(a.is_output);
      in.read(a.count);
      in.read(a.row_elements);
      in.read(a.row_pitch);
      in.read(a.bytes);
    }
  }
  return problem;
}

std::string to_bytes(const Record& record) {
  WireWriter out;
  out.add(record.kind).add(record.run).add(record.payload);
  return out.bytes();
}

std::vector<Record> records_from(std::string_view bytes) {
  WireReader in(bytes);
  std::vector<Record> records;
  try {
    while (!in.at_end()) {
      Record record;
      in.read(record.kind);
      in.read(record.run);
      in.read(record.payload);
      records.push_back(std::move(record));
    }
  } catch (const Error&) {  // the child died while it wrote this one
  }
  return records;
}

}  // namespace binade::lab
