// The flags of the commands, each described to CLI11 by one function; parse()
// (tools/command_line.h) calls them. Internal to tools/.
#pragma once
#include <binade/kernels/base/error.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "../command_line.h"

namespace binade::tool {

using Words = std::vector<std::string>;

// The program and its arguments, which follow the tool's own arguments with or without "--" between
// them.
struct Tail {
  bool separated = false;  // "--" was given
  Words words = {};
};

// Accepts a number in decimal digits. It is used with transform(), which keeps changes of `value`.
// CLI11 alone reads 010 as 8, -1 as 2^64 - 1, and accepts nan.
template <class T>
CLI::Validator number(T low = std::numeric_limits<T>::lowest(),
                      T high = std::numeric_limits<T>::max()) {
  std::string range = std::is_integral_v<T> ? "a whole number" : "a number";
  if (low != std::numeric_limits<T>::lowest() || high != std::numeric_limits<T>::max()) {
    range += text(" from ", low, " to ", high);
  }
  const auto parse = [low, high, range](std::string& value) {
    T parsed{};
    const char* end = value.data() + value.size();
    const auto [at, error] = std::from_chars(value.data(), end, parsed);
    if (error != std::errc() || at != end || !(parsed >= low && parsed <= high)) {
      return text("got '", value, "', expected ", range);
    }
    if (std::is_integral_v<T>) {
      value = text(parsed);
    }
    return std::string();
  };
  return {parse, ""};
}

inline CLI::Validator path() {
  return {[](std::string& value) { return value.empty() ? "got an empty path" : std::string(); },
          ""};
}

// Adds a flag without a value that may be given once.
inline CLI::Option* add_switch(CLI::App* command, const std::string& name, bool& value,
                               const std::string& help) {
  return command->add_flag(name, value, help)->multi_option_policy(CLI::MultiOptionPolicy::Throw);
}

// The remaining arguments of `command`, which stops at its first non-flag, and the tail.
inline Words program_of(const CLI::App& command, const std::string& name, const Tail& tail) {
  Words program = command.remaining();
  check(program.empty() || !program[0].starts_with('-'), name, ": got ",
        program.empty() ? "" : program[0], ", expected a flag of binade ", name,
        " or a program; a program whose name begins with - stands after --");
  if (tail.separated && !program.empty()) {
    program.push_back("--");  // belongs to the program
  }
  program.insert(program.end(), tail.words.begin(), tail.words.end());
  return program;
}

void add_lens(CLI::App& app, Command& chosen);
void add_replay(CLI::App& app, Command& chosen);
void add_black_box(CLI::App& app, Command& chosen);
void add_report(CLI::App& app, Command& chosen);
void add_diff(CLI::App& app, Command& chosen);
void add_runs(CLI::App& app, Command& chosen);
void add_watch(CLI::App& app, Command& chosen);
void add_trace(CLI::App& app, Command& chosen);
void add_checksum(CLI::App& app, Command& chosen);
void add_pack(CLI::App& app, Command& chosen);
void add_inspect(CLI::App& app, Command& chosen);
void add_decode(CLI::App& app, Command& chosen);
void add_kernel(CLI::App& app, Command& chosen);
void add_verify_dataset(CLI::App& app, Command& chosen);
void add_bench(CLI::App& app, Command& chosen);
void add_format(CLI::App& app, Command& chosen);

}  // namespace binade::tool
