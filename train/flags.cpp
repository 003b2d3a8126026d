#include <binade/core/device/device_info.h>
#include <binade/core/io/program_streams.h>
#include <binade/core/tensor/create.h>
#include <binade/dist/job/discovery_internal.h>
#include <binade/kernels/base/parallel.h>
#include <binade/kernels/base/printable.h>
#include <binade/train/flags.h>
#include <binade/train/profiler.h>
#include <binade/train/run_directory.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

namespace binade::train {
namespace {

constexpr int kError = 1, kUsage = 2, kDiverged = 3;  // exit statuses (docs/runs.md)

CLI::Validator within(double low, double high) {
  const FlagRange range{low, high};
  return CLI::Validator([range](std::string& value) { return range.mistake(value); },
                        range.words());
}

// The check of a function that throws for a wrong value.
template <class F>
CLI::Validator parsed_by(F parse) {
  return CLI::Validator(
      [parse](std::string& value) {
        try {
          parse(value);
          return std::string();
        } catch (const Error& error) {
          return std::string(error.what());
        }
      },
      "");
}

// The end of a run by a signal.
struct Stopped {
  int signal;
  std::string text;
};

int report(const std::exception& error, int status) {
  std::fflush(stdout);
  std::fputs(isatty(STDERR_FILENO) != 0 ? "\r\033[K" : "", stderr);  // clears the progress line
  print_error(error);
  return status;
}

}  // namespace

std::string FlagRange::mistake(const std::string& value) const {
  double parsed = 0;
  const bool good = CLI::detail::lexical_cast(value, parsed) && parsed >= low && parsed <= high;
  return good ? std::string() : text("got ", value, ", expected a number from ", low, " to ", high);
}

std::string FlagRange::words() const { return text("FROM ", low, " TO ", high); }

struct Program::Parser {
  Parser(const std::string& description, std::string name_of_program)
      : app(description), name(std::move(name_of_program)) {}
  CLI::App app;
  std::string name;
  // Settings that all parts of a resumed run must share: name -> its current text.
  std::map<std::string, std::function<std::string()>> settings = {};

  // Adds the setting only if it is not the default, so that runs older than the flag can resume.
  template <class T>
  void new_setting(const std::string& name, const T& value, const T& usual) {
    settings[name] = [&value, usual] { return value == usual ? "" : text(value); };
  }

  template <class T>
  void setting(const std::string& flag, const T& value) {
    settings[flag.substr(flag.find_first_not_of('-'))] = [&value] { return text(value); };
  }
};

Precision RunFlags::policy() const { return formats.applied_to(parse_precision(precision)); }

Device RunFlags::target() const {
  return device == "auto" ? Device::best() : Device::parse(device);
}

std::optional<optim::LossScaler> RunFlags::loss_scaler() const {
  const Precision wanted = policy();
  return wanted.policy != Precision::kFull && wanted.low == DType::f16
             ? std::optional(optim::LossScaler(scaler))
             : std::nullopt;
}

TrainerOptions RunFlags::trainer_options() const {
  TrainerOptions options;
  options.epochs = epochs;
  options.max_steps = steps;
  options.precision = policy();
  options.device = target();
  options.run = run;
  options.resume = resume;
  options.overwrite = overwrite;
  options.checkpoint_every = checkpoint_every;
  options.record_gradients = record_gradients;
  options.black_box.bytes = black_box << 20;
  options.shadow = shadow;
  options.stop_on_signal = true;
  options.settings = settings;
  formats.apply_to(options, seed);
  return options;
}

CheckpointOptions RunFlags::checkpoint_options() const {
  return {.path = run, .resume = resume, .overwrite = overwrite, .settings = settings};
}

int64_t RunFlags::total_steps(const data::Loader& train) const {
  const int64_t batches = train.batches_per_epoch();
  check(batches >= 0 || steps > 0,
        "--steps: got 0, expected a number, because the data do not tell how long an epoch is");
  const int64_t all = epochs > 0 && batches >= 0 ? epochs * batches : steps;
  return steps > 0 ? std::min(steps, all) : all;
}

void RunFlags::fit(Trainer& trainer, data::Loader& train, data::Loader* validation) const {
  trainer.fit(train, validation);
  if (const int signal = trainer.stopped_by()) {
    throw Stopped{signal, text("stopped by signal ", signal, " after step ", trainer.steps(),
                               "; --run ", printable(run), " --resume continues")};
  }
}

namespace {

void add_profile_flag(CLI::App& app, std::string& window) {
  app.add_option("--profile", window,
                 "record steps as RUN/trace.json: STEPS, or WAIT,WARMUP,STEPS[,REPEAT]; without a "
                 "value 5,2,20")
      ->expected(0, 1)
      ->check(CLI::Validator(
          [](std::string& text) {
            if (text.empty()) {
              text = kDefaultProfileWindow;
            }
            try {
              parse_profile_window(text);
              return std::string();
            } catch (const Error& error) {
              return std::string(error.what());
            }
          },
          ""));
}

void add_scaler_flags(CLI::App& app, RunFlags& f) {
  optim::LossScalerOptions& s = f.scaler;
  app.add_option("--init-scale", s.init_scale, "of the loss scale of fp16, a power of two")
      ->check(within(0x1p-24, 0x1p24));
  app.add_option("--growth-factor", s.growth_factor, "of the loss scale, a power of two")
      ->check(within(1, 0x1p24));
  app.add_option("--backoff-factor", s.backoff_factor,
                 "of the loss scale at an overflow, a power of two")
      ->check(within(0x1p-24, 1));
  app.add_option("--growth-interval", s.growth_interval,
                 "steps without an overflow until the loss scale grows")
      ->check(within(1, 1e9));
  app.add_option("--hysteresis", s.hysteresis,
                 "overflows since the last growth until the loss scale falls")
      ->check(within(1, 1e9));
  app.add_flag("--record-gradients", f.record_gradients,
               "the sizes of each step's gradients go to scaler.jsonl, for binade replay");
  app.add_option("--shadow", f.shadow,
                 "every so many steps a step runs beside itself in f64: shadow.html says which op "
                 "errs; 0: never")
      ->check(within(0, 1e9));
  app.add_option("--black-box", f.black_box,
                 "keep the first step that is not finite, in at most so many MB; 0: none")
      ->check(within(0, 1 << 20));
}

void add_format_flags(CLI::App& app, FormatFlags& f) {
  for (const FormatFlag& flag : format_flags()) {
    app.add_option(flag.name, f.*flag.value, flag.help)->check(parsed_by(flag.check));
  }
}

void add_shared_flags(CLI::App& app, RunFlags& f) {
  constexpr double kMost = 1e15;
  app.add_option("--data", f.data, "directory of the data");
  app.add_option("--epochs", f.epochs, "passes over the data; 0: no limit")
      ->check(within(0, kMost));
  app.add_option("--steps", f.steps, "steps of the optimizer at most; 0: no limit")
      ->check(within(0, kMost));
  app.add_option("--batch", f.batch, "samples of a step")->check(within(1, 1 << 20));
  app.add_option("--lr", f.lr, "learning rate")->check(within(1e-12, 1e6));
  app.add_option("--precision", f.precision,
                 "fp32, fp16 or bf16 (mixed), or a policy: autocast-fp16, half-bf16")
      ->check(parsed_by(parse_precision));
  app.add_option("--seed", f.seed, "of all random numbers")->check(within(0, 9e15));
  app.add_option("--device", f.device, "auto, cpu, cuda[:N] or emulated")
      ->check(parsed_by([](const std::string& name) {
        if (name != "auto") {
          Device::parse(name);
        }
      }));
  app.add_option("--threads", f.threads, "compute threads; 0: all usable cores")
      ->check(within(0, 1024));
  app.add_option("--run", f.run,
                 "directory for metrics and checkpoints; default: the next free runs/NAME-N");
  app.add_flag("--resume", f.resume, "continue the run in --run, or start it");
  app.add_flag("--overwrite", f.overwrite,
               "begin anew in --run; the run in it is kept as RUN.replaced-N");
  app.add_option("--checkpoint-every", f.checkpoint_every,
                 "steps between checkpoints; 0: at the end of an epoch only")
      ->check(within(0, kMost));
  add_profile_flag(app, f.profile);
  add_scaler_flags(app, f);
  add_format_flags(app, f.formats);
}

}  // namespace

Program::Program(std::string name, std::string description, RunFlags defaults,
                 std::vector<std::string> without)
    : flags_(std::move(defaults)), parser_(std::make_unique<Parser>(description, std::move(name))) {
  CLI::App& app = parser_->app;
  add_shared_flags(app, flags_);
  parser_->setting("epochs", flags_.epochs);
  parser_->setting("steps", flags_.steps);
  parser_->setting("batch", flags_.batch);
  parser_->setting("lr", flags_.lr);
  parser_->setting("precision", flags_.precision);
  parser_->setting("seed", flags_.seed);
  const optim::LossScalerOptions usual;
  const optim::LossScalerOptions& scaler = flags_.scaler;
  parser_->new_setting("init-scale", scaler.init_scale, usual.init_scale);
  parser_->new_setting("growth-factor", scaler.growth_factor, usual.growth_factor);
  parser_->new_setting("backoff-factor", scaler.backoff_factor, usual.backoff_factor);
  parser_->new_setting("growth-interval", scaler.growth_interval, usual.growth_interval);
  parser_->new_setting("hysteresis", scaler.hysteresis, usual.hysteresis);
  const FormatFlags plain;
  for (const FormatFlag& flag : format_flags()) {
    parser_->new_setting(flag.name + 2, flags_.formats.*flag.value, plain.*flag.value);
  }
  for (const std::string& flag : without) {
    CLI::Option* option = app.get_option_no_throw(flag);
    check(option != nullptr, "Program: got ", flag,
          " among the flags to leave out, expected shared flags");
    app.remove_option(option);
    parser_->settings.erase(flag.substr(2));
  }
  app.footer(
      "Exit status: 0 success, 1 error, 2 wrong flags, 3 the run diverged, 128 + N ended by "
      "signal N with a checkpoint.");
}

Program::~Program() = default;

void Program::add(const std::string& flag, double& value, const std::string& help,
                  const FlagRange& range) {
  parser_->app.add_option(flag, value, help)->check(within(range.low, range.high));
  parser_->setting(flag, value);
}

void Program::add(const std::string& flag, int64_t& value, const std::string& help,
                  const FlagRange& range) {
  parser_->app.add_option(flag, value, help)->check(within(range.low, range.high));
  parser_->setting(flag, value);
}

void Program::add(const std::string& flag, std::string& value, const std::string& help) {
  parser_->app.add_option(flag, value, help);
}

void Program::add(const std::string& flag, bool& value, const std::string& help) {
  parser_->app.add_flag(flag, value, help);
}

void Program::add(const std::string& flag, std::vector<std::string>& values,
                  const std::string& help) {
  parser_->app.add_option(flag, values, help);
}

namespace {

// A line that says where and how the program runs.
void announce(const CLI::App& app, const std::string& name, const RunFlags& f) {
  std::string line = text(name, ", ", to_string(f.policy()), ", on ", describe(f.target()));
  if (app.get_option_no_throw("--run") != nullptr) {
    line += text(", run directory ", printable(f.run));
  }
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void announce_profile(const Profiler& profiler) {
  if (profiler.windows() > 0) {
    const std::string& file = profiler.file();
    std::printf("profile of %zu steps: %s; binade trace %s prints its tables\n",
                profiler.trace().steps().size(), printable(file).c_str(), printable(file).c_str());
  }
}

void check_paths(const CLI::App& app) {
  for (const char* flag : {"--data", "--run"}) {
    const CLI::Option* option = app.get_option_no_throw(flag);
    check(option == nullptr || option->count() == 0 || !option->as<std::string>().empty(), flag,
          ": got an empty path");
  }
}

}  // namespace

int Program::run_body(int argc, char** argv, const std::function<int(const RunFlags&)>& body) {
  const ProgramStreams streams;
  CLI::App& app = parser_->app;
  for (CLI::Option* option :
       app.get_options([](CLI::Option* o) { return o->get_expected_max() == 1; })) {
    option->capture_default_str();
  }
  try {
    app.parse(argc, argv);
    check_paths(app);
    check(!flags_.resume || !flags_.run.empty(), "--resume: has no effect without --run DIR");
    (void)optim::ScalerState(flags_.scaler);  // throws if the factors do not go together
    flags_.formats.check_together();
    check(!(flags_.resume && flags_.overwrite), "got both --resume and --overwrite, expected one");
  } catch (const CLI::Success& help) {
    return streams.finish(app.exit(help));
  } catch (const std::exception& error) {
    print_error(error);
    return kUsage;
  }
  try {
    kernels::set_threads(flags_.threads);
    if (flags_.run.empty() && app.get_option_no_throw("--run") != nullptr) {
      flags_.run = fresh_run_directory("runs/" + parser_->name);
    }
    for (const auto& [name, value] : parser_->settings) {
      if (std::string words = value(); !words.empty()) {
        flags_.settings[name] = std::move(words);
      }
    }
    manual_seed(flags_.seed);
    announce(app, parser_->name, flags_);
    const auto profiler = profile_run(flags_.profile, flags_.run, dist::discover().rank);
    const int status = body(flags_);
    if (profiler) {
      finish_profile(profiler.get(), flags_.run);
      announce_profile(*profiler);
    }
    return streams.finish(status);
  } catch (const Stopped& stopped) {
    std::printf("%s\n", stopped.text.c_str());
    return streams.finish(128 + stopped.signal);
  } catch (const Diverged& error) {
    return report(error, kDiverged);
  } catch (const optim::OverflowAtFloor& error) {
    return report(error, kDiverged);
  } catch (const std::exception& error) {
    return report(error, kError);
  }
}

}  // namespace binade::train
