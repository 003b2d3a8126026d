// binade: the tool. binade doctor says what a build can do on this machine.
#include "doctor.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

int main(int argc, char** argv) {
  CLI::App app{"Binade's tool"};
  app.set_version_flag("--version", BINADE_VERSION);
  app.require_subcommand(1);
  int result = 0;
  app.add_subcommand("doctor", "what this build is made of, and which device programs use")
      ->callback([&] { result = binade::run_doctor(); });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "binade: error: %s\n", error.what());
    return 1;
  }
  return result;
}
