// The flags of binade bench and binade bench diff.
#include "flags_internal.h"

namespace binade::tool {
namespace {

void add_bench_measure(CLI::App* command, BenchOptions& o) {
  command->add_option(
      "CASE", o.words,
      "KERNEL or KERNEL:ROWSxCOLS, several for a sweep; or diff OLD NEW: two builds, "
      "installations, or files of --json, whose cases are those of --case");
  command->add_option("--case", o.cases, "a case of diff: KERNEL or KERNEL:ROWSxCOLS")
      ->allow_extra_args(false);
  command->add_option("--dtype", o.dtypes, "f64, f32, f16, bf16, or several: f32,f16")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--device", o.device, "auto, cpu, cuda[:N] or emulated")
      ->capture_default_str();
  command->add_option("--provider", o.provider, "own, library, auto or another of its family");
  command->add_option("--samples", o.samples, "of each case; of diff in a round (7)")
      ->transform(number<int>(1, 100000));
  command->add_option("--threads", o.threads, "of the CPU; 0: all")
      ->transform(number<int>(0, 4096))
      ->capture_default_str();
}

void check_bench(const BenchOptions& o) {
  const bool diff = !o.words.empty() && o.words[0] == "diff";
  check(!diff || o.words.size() == 3, "bench diff: got ", o.words.size() - 1,
        " paths, expected OLD and NEW");
  check(diff || o.cases.empty(), "bench: --case has no effect without diff");
  check(diff || (!o.rounds && !o.minimum),
        "bench: --rounds and --minimum have no effect without "
        "diff");
  check(
      !diff || !(o.warm || o.list || o.serve || o.check_only || !o.svg.empty() || !o.json.empty()),
      "bench diff: --warm, --list, --serve, --check, --svg and --json have no effect");
  check(int{o.list} + int{o.serve} + int{o.check_only} <= 1,
        "bench: got several of --list, --serve and --check, expected one");
  check(diff || o.list || o.serve || o.all || !o.words.empty(),
        "bench: got no case, expected KERNEL or KERNEL:ROWSxCOLS (binade bench --list), --all, or "
        "diff OLD NEW");
  check(!(o.list || o.serve) || (o.words.empty() && !o.all && o.json.empty() && o.svg.empty()),
        "bench: cases, --all, --json and --svg have no effect with --list and --serve");
  check(!o.check_only || (o.json.empty() && o.svg.empty() && o.samples == 0),
        "bench: --json, --svg and --samples have no effect with --check");
  check(!(o.all && (diff || !o.words.empty())), "bench: got --all beside cases, expected one");
}

}  // namespace

void add_bench(CLI::App& app, Command& chosen) {
  const auto o = std::make_shared<BenchOptions>();
  auto* command = app.add_subcommand(
      "bench",
      "time kernels, checked before and after, beside the ceilings of the machine; or compare two "
      "builds: binade bench diff OLD NEW");
  add_bench_measure(command, *o);
  add_switch(command, "--warm", o->warm, "do not empty the caches before each sample");
  add_switch(command, "--list", o->list, "the kernels, and what rows and cols mean");
  add_switch(command, "--all", o->all, "every kernel of --list, with 65 x 33");
  add_switch(command, "--check", o->check_only, "check the results, and take no times");
  add_switch(command, "--serve", o->serve, "time what is asked for on the standard input");
  command->add_option("--json", o->json, "write the samples and all facts there")->check(path());
  command->add_option("--svg", o->svg, "write a roofline picture there")->check(path());
  command->add_option("--rounds", o->rounds, "of diff: both programs are started anew in each (24)")
      ->transform(number<int>(6, 10000));
  command->add_option("--minimum", o->minimum, "of diff: percent below which a change is none (2)")
      ->transform(number<double>(0.1, 1000));
  command->add_option("--plant", o->plant)
      ->transform(number<double>(1, 1000))
      ->group("");  // for tests: slows NEW down by this factor
  command->callback([o, &chosen] {
    check_bench(*o);
    chosen = *o;
  });
}

}  // namespace binade::tool
