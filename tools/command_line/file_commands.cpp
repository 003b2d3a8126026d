// The flags of commands that read or write files: runs, models and data.
#include "flags_internal.h"

#include <binade/train/precision/scale_replay.h>

namespace binade::tool {
namespace {

// Reads "256" or "256x320" into PackOptions::height and width.
CLI::Validator image_size(PackOptions& options) {
  return {[&options](std::string& value) {
            constexpr int kMost = 32768;
            const size_t cross = value.find('x');
            const bool has_width = cross != std::string::npos;
            const auto parse = [](std::string_view digits, int& side) {
              const auto [at, error] =
                  std::from_chars(digits.data(), digits.data() + digits.size(), side);
              return error == std::errc() && at == digits.data() + digits.size() && side >= 1 &&
                     side <= kMost;
            };
            const std::string_view all = value;
            const bool ok = parse(all.substr(0, cross), options.height) &&
                            (!has_width || parse(all.substr(cross + 1), options.width));
            return ok ? std::string()
                      : text("got '", value,
                             "', expected N for the short side, or HEIGHTxWIDTH, of 1 to ", kMost);
          },
          ""};
}

}  // namespace

void add_lens(CLI::App& app, Command& chosen) {
  const auto o = std::make_shared<LensOptions>();
  auto* command = app.add_subcommand(
      "lens", "the heat map of layers and exponents of a run, and the static loss scale it bears");
  command->add_option("DIR", o->run, "the run, or its lens.jsonl")->required()->check(path());
  command->add_option("OTHERS", o->others, "runs beside it on the page")->check(path());
  command->add_option("--html", o->page, "write the page there instead")->check(path());
  command->callback([o, &chosen] {
    check(o->others.empty() || !o->page.empty(),
          "lens: got several runs, expected --html PAGE, where they stand side by side");
    chosen = *o;
  });
}

void add_replay(CLI::App& app, Command& chosen) {
  const auto o = std::make_shared<ReplayOptions>();
  auto* command = app.add_subcommand(
      "replay", "what other policies of the loss scale would have done to a run");
  command->add_option("RUN", o->run, "the run, or its scaler.jsonl")->required()->check(path());
  command
      ->add_option("--policy", o->policies,
                   "static:1024, dynamic, or dynamic:KEY=VALUE,... with the keys init, growth, "
                   "backoff, interval, hysteresis, min, max; may be given several times")
      ->required()
      ->allow_extra_args(false)
      ->check(path());
  command->add_option("--phase", o->phase, "of a run with several phases");
  command->callback([o, &chosen] {
    for (const std::string& policy : o->policies) {
      (void)train::parse_scale_policy(policy);
    }
    chosen = *o;
  });
}

void add_black_box(CLI::App& app, Command& chosen) {
  const auto o = std::make_shared<BlackBoxOptions>();
  auto* command = app.add_subcommand(
      "blackbox", "run the step again that was not finite: its cause, and what cures it");
  command->add_option("FILE", o->file, "RUN/blackbox.safetensors, or the run")
      ->required()
      ->check(path());
  auto* device = command->add_option("--device", o->device, "cpu, cuda[:N] or emulated")
                     ->capture_default_str();
  auto* threads = command->add_option("--threads", o->threads, "compute threads; 0: all cores")
                      ->transform(number<int>(0, 1024))
                      ->capture_default_str();
  add_switch(command, "--show", o->show, "only print what the run found, for any model");
  command->callback([=, &chosen] {
    check(!o->show || device->count() + threads->count() == 0,
          "blackbox: --device and --threads have no effect with --show");
    (void)Device::parse(o->device);
    chosen = *o;
  });
}

void add_report(CLI::App& app, Command& chosen) {
  const auto o = std::make_shared<ReportOptions>();
  auto* command = app.add_subcommand(
      "report",
      "one page about a run, or about several drawn over each other: curves, memory, "
      "stalls, settings");
  command->add_option("RUN", o->runs, "run directories")->required()->check(path());
  command
      ->add_option("--html", o->page, "the file; default: RUN/report.html, of several report.html")
      ->check(path());
  command->callback([o, &chosen] { chosen = *o; });
}

void add_diff(CLI::App& app, Command& chosen) {
  const auto o = std::make_shared<DiffOptions>();
  auto* command = app.add_subcommand(
      "diff", "where two runs differ: settings, curves, the first step and tensor; status 1 if so");
  command->add_option("RUN_A", o->a, "a run directory")->required()->check(path());
  command->add_option("RUN_B", o->b, "another one")->required()->check(path());
  command->callback([o, &chosen] { chosen = *o; });
}

void add_runs(CLI::App& app, Command& chosen) {
  const auto o = std::make_shared<RunsOptions>();
  auto* command = app.add_subcommand("runs", "list the runs below a folder with their results");
  command->add_option("DIR", o->folder, "the folder")->check(path())->capture_default_str();
  command->callback([o, &chosen] { chosen = *o; });
}

void add_watch(CLI::App& app, Command& chosen) {
  const auto o = std::make_shared<WatchOptions>();
  auto* command = app.add_subcommand("watch", "follow a run in the terminal until it ends");
  command->add_option("RUN", o->run, "a run directory")->required()->check(path());
  command->add_option("--interval", o->interval, "seconds between looks")
      ->transform(number<double>(0.05, 3600))
      ->capture_default_str();
  add_switch(command, "--once", o->once, "print the state now, and end");
  command->callback([o, &chosen] { chosen = *o; });
}

void add_trace(CLI::App& app, Command& chosen) {
  const auto o = std::make_shared<TraceOptions>();
  auto* command = app.add_subcommand(
      "trace", "the tables of a trace: time by phase, op, module and kernel, and what to change");
  command->add_option("FILE", o->path, "a trace, or the run directory of a program with --profile")
      ->required()
      ->check(path());
  command->add_option("--flame", o->flame, "write a flame graph by module there, as SVG")
      ->check(path());
  command->add_option("--rows", o->rows, "of each table")
      ->transform(number<int64_t>(1, 100000))
      ->capture_default_str();
  command->callback([o, &chosen] { chosen = *o; });
}

void add_checksum(CLI::App& app, Command& chosen) {
  const auto o = std::make_shared<ChecksumOptions>();
  auto* command = app.add_subcommand(
      "checksum", "write the checksums of the files of a data folder, or verify them");
  command
      ->add_option("DIR", o->folder,
                   "the folder; DIR/binade-checksums.txt is written if it is not there, else "
                   "the files are compared with it")
      ->required()
      ->check(path());
  add_switch(command, "--verify", o->verify, "only compare; no manifest is an error");
  add_switch(command, "--update", o->update, "write the manifest anew, and list what differs");
  command->callback([o, &chosen] {
    check(!(o->verify && o->update), "checksum: got both --verify and --update, expected one");
    chosen = *o;
  });
}

void add_pack(CLI::App& app, Command& chosen) {
  const auto o = std::make_shared<PackOptions>();
  auto* command = app.add_subcommand(
      "pack", "write a data set to a store, which is read faster: binade pack DIR OUT");
  command
      ->add_option("DIR", o->source,
                   "an image folder, idx or CIFAR files, tar shards or a store; or a file: "
                   "tensors (.safetensors), or token ids with --tokens")
      ->required()
      ->check(path());
  command->add_option("OUT", o->store, "the folder of the store")->required()->check(path());
  const auto size = std::make_shared<std::string>();  // image_size() writes to *o
  command
      ->add_option("--resize", *size,
                   "of every image, to N pixels of the short side, or to HEIGHTxWIDTH")
      ->check(image_size(*o));
  add_switch(command, "--raw", o->raw,
             "store pixels: large, and fastest (without --raw and --jpeg: files as they are, and "
             "pixels where images are resized)");
  add_switch(command, "--jpeg", o->jpeg, "store JPEGs: those that are there, where not resized");
  auto* quality = command->add_option("--quality", o->quality, "of JPEGs")
                      ->transform(number<int>(1, 100))
                      ->capture_default_str();
  add_switch(command, "--append", o->append, "add the samples to the store that is there");
  add_switch(command, "--skip-bad", o->skip_bad, "leave out what cannot be read, and list it");
  command->add_option("--shard-mebibytes", o->shard_mebibytes, "size of a file of the store")
      ->transform(number<int64_t>(1, int64_t{1} << 20))
      ->capture_default_str();
  auto* tokens = command->add_option("--tokens", o->tokens, "the ids of a token file: u16 or u32")
                     ->check(CLI::IsMember({"u16", "u32"}));
  auto* context = command->add_option("--context", o->context, "tokens of a sample")
                      ->transform(number<int64_t>(1, int64_t{1} << 30));
  tokens->needs(context);
  context->needs(tokens);
  command->callback([o, size, quality, &chosen] {
    check(!(o->raw && o->jpeg), "pack: got both --raw and --jpeg, expected one");
    check(o->jpeg || quality->count() == 0, "pack: --quality has no effect without --jpeg");
    check(o->tokens.empty() || !(o->raw || o->jpeg || o->height > 0),
          "pack: --raw, --jpeg and --resize have no effect with --tokens");
    chosen = *o;
  });
}

void add_inspect(CLI::App& app, Command& chosen) {
  const auto o = std::make_shared<InspectOptions>();
  auto* command = app.add_subcommand(
      "inspect", "the tensors, metadata and checksums of a model file or a checkpoint");
  command->add_option("PATH", o->path, "a safetensors file, a checkpoint or a run directory")
      ->required()
      ->check(path());
  add_switch(command, "--verify", o->verify, "read everything and compare the checksums");
  command->callback([o, &chosen] { chosen = *o; });
}

void add_decode(CLI::App& app, Command& chosen) {
  const auto o = std::make_shared<DecodeOptions>();
  auto* command = app.add_subcommand(
      "decode", "the pixels of an image file as raw RGBA bytes, row by row, and a line of facts");
  command->add_option("FILE", o->file, "JPEG, PNG, BMP, PNM, GIF, WebP or TGA, by its content")
      ->required()
      ->check(path());
  command
      ->add_option("--out", o->output,
                   "write the pixels there; without it to the standard output, unless it is a "
                   "terminal")
      ->check(path());
  add_switch(command, "--facts", o->facts_only, "print the facts alone");
  add_switch(command, "--keep-orientation", o->keep_orientation,
             "leave the picture as it is stored, whatever EXIF says");
  command->callback([o, &chosen] {
    check(!o->facts_only || o->output.empty(), "decode: got both --facts and --out, expected one");
    chosen = *o;
  });
}

void add_verify_dataset(CLI::App& app, Command& chosen) {
  const auto o = std::make_shared<VerifyDatasetOptions>();
  auto* command = app.add_subcommand(
      "verify-dataset",
      "decode every image of a data folder: bad files, duplicates, classes, sizes, mean; status 1 "
      "for a bad file or a picture in train and test");
  command->add_option("DIR", o->folder, "an image folder or idx files")->required()->check(path());
  command->add_option("--report", o->report, "write the report there as JSON")->check(path());
  add_switch(command, "--json", o->json, "print JSON instead of text");
  command->add_option("--seed", o->seed, "of the split of a folder without train and test")
      ->transform(number<uint64_t>())
      ->capture_default_str();
  command->callback([o, &chosen] { chosen = *o; });
}

}  // namespace binade::tool
