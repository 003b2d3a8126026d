// Command lines of binade: what they become, and the one line that refuses the wrong ones.
#include "tools/command_line.h"

#include <binade/kernels/base/error.h>
#include <binade/kernels/base/printable.h>
#include <gtest/gtest.h>

#include <iterator>
#include <limits>
#include <sstream>

namespace binade::tool {
namespace {

using Words = std::vector<std::string>;

Words words_of(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

template <class T>
T parsed(const Words& words) {
  return std::get<T>(parse_command_line(words));
}

template <class T>
T parsed(const std::string& line) {
  return parsed<T>(words_of(line));
}

std::string refusal(const Words& words) {
  try {
    parse_command_line(words);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(CommandLine, BecomesPlainOptions) {
  const auto doctor = parsed<DoctorOptions>("doctor --security --run r");
  EXPECT_TRUE(doctor.security);
  EXPECT_EQ(doctor.run, "r");
  EXPECT_FALSE(parsed<DoctorOptions>("doctor").security);
  EXPECT_TRUE(parsed<DoctorOptions>("doctor --providers").providers);
  const auto lens = parsed<LensOptions>("lens --html page.html run");
  EXPECT_EQ(lens.run, "run");
  EXPECT_EQ(lens.page, "page.html");
  const auto checksum = parsed<ChecksumOptions>("checksum folder --update");
  EXPECT_EQ(checksum.folder, "folder");
  EXPECT_TRUE(checksum.update && !checksum.verify);
  const auto pack = parsed<PackOptions>("pack --resize 48x064 --jpeg --quality 80 folder out");
  EXPECT_EQ(pack.source + pack.store, "folderout");
  EXPECT_EQ(pack.height, 48);
  EXPECT_EQ(pack.width, 64);
  EXPECT_EQ(pack.quality, 80);
  EXPECT_TRUE(pack.jpeg && !pack.raw && !pack.append);
  EXPECT_EQ(parsed<PackOptions>("pack a b --tokens u16 --context 8").context, 8);
  const auto inspect = parsed<InspectOptions>("inspect --verify file");
  EXPECT_EQ(inspect.path, "file");
  EXPECT_TRUE(inspect.verify);
  EXPECT_EQ(parsed<InspectOptions>("inspect -- --verify").path, "--verify");
  const auto decode = parsed<DecodeOptions>("decode f.png --out f.rgba --keep-orientation");
  EXPECT_EQ(decode.file, "f.png");
  EXPECT_EQ(decode.output, "f.rgba");
  EXPECT_TRUE(decode.keep_orientation && !decode.facts_only);
  const auto dataset = parsed<VerifyDatasetOptions>("verify-dataset d --report r.json --seed 7");
  EXPECT_EQ(dataset.folder, "d");
  EXPECT_EQ(dataset.report, "r.json");
  EXPECT_EQ(dataset.seed, 7u);
  const auto kernel = parsed<KernelOptions>(
      "kernel k.cu --case softmax:4x5 --json r.json --page p.html --compiler c++ --strict");
  EXPECT_EQ(kernel.file, "k.cu");
  EXPECT_EQ(kernel.case_and_shape, "softmax:4x5");
  EXPECT_EQ(kernel.json, "r.json");
  EXPECT_EQ(kernel.page, "p.html");
  EXPECT_EQ(kernel.compiler, "c++");
  EXPECT_TRUE(kernel.strict && !kernel.watch && !kernel.no_counts);
  parsed<OpClassesOptions>("op-classes");
  const auto format =
      parsed<FormatOptions>("format e4m3fn 1.3 --value=-2 --decode 126 --rounding toward-zero");
  EXPECT_EQ(format.format, "e4m3fn");
  EXPECT_EQ(format.values, (std::vector<double>{1.3, -2}));
  EXPECT_EQ(format.codes, std::vector<uint64_t>{126});
  EXPECT_EQ(format.rounding, "toward-zero");
  parsed<VersionOptions>("--version");
}

TEST(CommandLine, OfALensHasNumbersInDecimalDigits) {
  const auto o = parsed<RingLensOptions>(
      "ring-lens --ranks 2,010 --ranks=4 --elements 64 --deviation 1e-2 --seed "
      "18446744073709551615 --json");
  EXPECT_EQ(o.lens.ranks, (std::vector<int>{2, 10, 4}));
  EXPECT_EQ(o.elements, 64);
  EXPECT_EQ(o.deviation, 1e-2);
  EXPECT_EQ(o.lens.seed, std::numeric_limits<uint64_t>::max());
  EXPECT_TRUE(o.json);
  const auto file = parsed<RingLensOptions>("ring-lens --ranks 2 file name");
  EXPECT_EQ(file.file, "file");
  EXPECT_EQ(file.name, "name");
  EXPECT_EQ(parsed<RingLensOptions>("ring-lens").lens.ranks, dist::RingLensOptions().ranks);
}

TEST(CommandLine, LeavesTheProgramsArgumentsAlone) {
  const auto launch = parsed<LaunchOptions>("launch -n 3 --grace 0.5 p -n 5 --help -- ++ x");
  EXPECT_EQ(launch.processes.ranks, 3);
  EXPECT_EQ(launch.processes.grace_seconds, 0.5);
  EXPECT_EQ(launch.program, words_of("p -n 5 --help -- ++ x"));
  EXPECT_EQ(parsed<LaunchOptions>("launch -n 010 p").processes.ranks, 10);
  EXPECT_EQ(parsed<LaunchOptions>("launch -- --odd x").program, words_of("--odd x"));
  EXPECT_EQ(parsed<LaunchOptions>(Words{"launch", "p", "", "a\nb"}).program,
            (Words{"p", "", "a\nb"}));
  const auto slurm = parsed<SlurmSubmitOptions>(
      "slurm submit --dry-run --nodes 2 --sbatch=--mem=64G --sbatch --x -- train --help -- y");
  EXPECT_TRUE(slurm.dry_run);
  EXPECT_EQ(slurm.job.nodes, 2);
  EXPECT_EQ(slurm.job.options, words_of("--mem=64G --x"));
  EXPECT_EQ(slurm.job.command, words_of("train --help -- y"));
}

TEST(CommandLine, HasHelpForEveryCommand) {
  EXPECT_NE(parsed<HelpOptions>("--help").text.find("ring-lens "), std::string::npos);
  for (const char* command :
       {"doctor", "lens", "launch", "slurm", "slurm submit", "ring-lens", "checksum", "pack",
        "inspect", "report", "diff", "runs", "watch", "format", "kernel", "op-classes"}) {
    for (const char* flag : {" --help", " -h"}) {
      const std::string page = parsed<HelpOptions>(std::string(command) + flag).text;
      EXPECT_NE(page.find(text("Usage: binade ", command, " [OPTIONS]")), page.npos) << page;
    }
  }
}

struct Mistake {
  const char* line;
  const char* message;  // before "; see binade COMMAND --help"
};

class WrongUse : public ::testing::TestWithParam<Mistake> {};

TEST_P(WrongUse, IsOneLine) {
  const std::string message = refusal(words_of(GetParam().line));
  const size_t hint = message.find("; see binade ");
  ASSERT_NE(hint, std::string::npos) << message;
  EXPECT_EQ(message.substr(0, hint), GetParam().message);
  EXPECT_TRUE(message.ends_with("--help"));
}

constexpr const char* kCommands =
    "doctor, lens, replay, blackbox, launch, slurm, ring-lens, checksum, pack, inspect, report, "
    "diff, runs, watch, trace, bottleneck, decode, verify-dataset, kernel, bench, format, "
    "op-classes";

TEST(WrongUse, OfNoCommandListsThem) {
  EXPECT_EQ(refusal({}), text("got no command, expected ", kCommands, "; see binade --help"));
  EXPECT_EQ(refusal({"nope"}), text("got 'nope', expected ", kCommands, "; see binade --help"));
  EXPECT_EQ(refusal({"--", "doctor"}),
            text("got '--', expected ", kCommands, "; see binade --help"));
  EXPECT_EQ(refusal({""}), text("got '', expected ", kCommands, "; see binade --help"));
  EXPECT_EQ(refusal({"--nope", "doctor"}),
            text("got '--nope', expected ", kCommands, "; see binade --help"));
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongUse,
    ::testing::Values(
        Mistake{"pack folder", "pack: OUT is required"},
        Mistake{"pack a b --raw --jpeg", "pack: got both --raw and --jpeg, expected one"},
        Mistake{"pack a b --quality 5", "pack: --quality has no effect without --jpeg"},
        Mistake{"pack a b --context 5", "pack: --context requires --tokens"},
        Mistake{"pack a b --resize 5x",
                "pack: --resize: got '5x', expected N for the short side, or HEIGHTxWIDTH, of 1 to "
                "32768"},
        Mistake{"doctor extra", "doctor: The following argument was not expected: extra"},
        Mistake{"doctor --nope", "doctor: The following argument was not expected: --nope"},
        Mistake{"doctor ++", "doctor: got '++', which means nothing here; write ./++ for a path"},
        Mistake{"doctor --run r", "doctor: --run requires --security"},
        Mistake{"doctor --security=false --run r",
                "doctor: --run has no effect without --security"},
        Mistake{"doctor --security --security",
                "doctor: --security: At Most 1 required but received 2"},
        Mistake{"lens", "lens: DIR is required"},
        Mistake{"lens a --html", "lens: --html: 1 required TEXT missing"},
        Mistake{"lens a b",
                "lens: got several runs, expected --html PAGE, where they stand side by side"},
        Mistake{"launch", "launch: got no program; binade launch -n 4 program arguments..."},
        Mistake{"launch -n 2 --",
                "launch: got no program; binade launch -n 4 program arguments..."},
        Mistake{"launch -n", "launch: -n: 1 required INT missing"},
        Mistake{"launch -n 2 -n 3 p", "launch: -n: At Most 1 required but received 2"},
        Mistake{"launch -n 0 p", "launch: got 0 processes, expected 1 to 4096"},
        Mistake{"launch -n 4097 p", "launch: got 4097 processes, expected 1 to 4096"},
        Mistake{"launch -n x p", "launch: -n: got 'x', expected a whole number"},
        Mistake{"launch -n 1.5 p", "launch: -n: got '1.5', expected a whole number"},
        Mistake{"launch -n 99999999999 p",
                "launch: -n: got '99999999999', expected a whole number"},
        Mistake{"launch --grace nan p", "launch: --grace: got 'nan', expected a number"},
        Mistake{"launch --grace -1 p", "launch: got a grace of -1 s, expected 0 or more"},
        Mistake{"launch --link-delay x p",
                "link delay: got 'x', expected milliseconds, or milliseconds and MB/s: 0.5,100"},
        Mistake{"launch --gracee 2 p",
                "launch: got --gracee, expected a flag of binade launch or a program; a program "
                "whose name begins with - stands after --"},
        Mistake{"slurm", "slurm: got no command, expected submit"},
        Mistake{"slurm nope", "slurm: got 'nope', expected submit"},
        Mistake{"slurm submit",
                "slurm submit: got no program; binade slurm submit --nodes 2 --gpus 4 -- program "
                "..."},
        Mistake{"slurm submit --nodes 0 p", "slurm submit: got --nodes 0, expected 1 to 100000"},
        Mistake{"slurm submit --nodes 2 --nodes 2 p",
                "slurm submit: --nodes: At Most 1 required but received 2"},
        Mistake{"slurm submit --node 2 -- p",
                "slurm submit: got --node, expected a flag of binade slurm submit or a program; a "
                "program whose name begins with - stands after --"},
        Mistake{"slurm submit --name a'b p",
                "slurm submit: got --name 'a'b', expected letters, digits and _-.,:%@/=+[]* only"},
        Mistake{"slurm submit --dry-run --dry-run p",
                "slurm submit: --dry-run: At Most 1 required but received 2"},
        Mistake{"ring-lens --ranks 2,x",
                "ring-lens: --ranks: got 'x', expected a whole number from 2 to 4096"},
        Mistake{"ring-lens --ranks 1",
                "ring-lens: --ranks: got '1', expected a whole number from 2 to 4096"},
        Mistake{"ring-lens --ranks", "ring-lens: --ranks: 1 required INT missing"},
        Mistake{"ring-lens --elements 0",
                "ring-lens: --elements: got '0', expected a whole number from 1 to 268435456"},
        Mistake{"ring-lens --elements 1e3",
                "ring-lens: --elements: got '1e3', expected a whole number from 1 to 268435456"},
        Mistake{"ring-lens --elements 1 --elements 2",
                "ring-lens: --elements: At Most 1 required but received 2"},
        Mistake{"ring-lens --deviation nan",
                "ring-lens: --deviation: got 'nan', expected a number from 0 to 1e+30"},
        Mistake{"ring-lens --seed -1", "ring-lens: --seed: got '-1', expected a whole number"},
        Mistake{"ring-lens file",
                "ring-lens: got a file but no name of a tensor: binade ring-lens FILE NAME"},
        Mistake{"ring-lens file name --elements 5",
                "ring-lens: --elements and --deviation have no effect with a file"},
        Mistake{"checksum", "checksum: DIR is required"},
        Mistake{"checksum a --verify --update",
                "checksum: got both --verify and --update, expected one"},
        Mistake{"inspect", "inspect: PATH is required"},
        Mistake{"report", "report: RUN is required"}, Mistake{"diff a", "diff: RUN_B is required"},
        Mistake{"watch a --interval 0",
                "watch: --interval: got '0', expected a number from 0.05 to 3600"},
        Mistake{"kernel --case softmax", "kernel: FILE is required"},
        Mistake{"kernel k.cu", "kernel: --case is required"},
        Mistake{"kernel k.cu --case gemm --json a --page a",
                "kernel: --json and --page name one file"},
        Mistake{"op-classes x", "op-classes: The following argument was not expected: x"}));

TEST(CommandLine, AnEmptyPathIsRefused) {
  for (const Words& words :
       {Words{"lens", ""}, Words{"lens", "a", "--html", ""}, Words{"checksum", ""},
        Words{"inspect", ""}, Words{"report", ""}, Words{"report", "a", "--html", ""},
        Words{"diff", "a", ""}, Words{"runs", ""}, Words{"watch", ""},
        Words{"kernel", "", "--case", "gemm"}, Words{"kernel", "a", "--case", ""},
        Words{"ring-lens", "", "name"}, Words{"doctor", "--security", "--run", ""},
        Words{"launch", ""}, Words{"slurm", "submit", "--", ""}}) {
    const std::string message = refusal(words);
    EXPECT_TRUE(message.find("got an empty path") != message.npos ||
                message.find("got no program") != message.npos)
        << words[0] << ": " << message;
  }
}

// A terminal or a log is not written to by what a stranger named a file.
TEST(CommandLine, ErrorsShowControlCharactersEscaped) {
  const std::string odd = "a\n\x1b[2J\r\x7f\xff";
  const std::string shown = "a\\x0a\\x1b[2J\\x0d\\x7f\\xff";
  for (const Words& words :
       {Words{odd}, Words{"doctor", odd}, Words{"launch", "-n", odd, "p"},
        Words{"launch", "--" + odd, "p"}, Words{"slurm", odd},
        Words{"slurm", "submit", "--name", odd, "p"}, Words{"launch", "--link-delay", odd, "p"},
        Words{"ring-lens", "--ranks", odd}, Words{"doctor", "--security=" + odd}}) {
    const std::string message = refusal(words);
    EXPECT_NE(message.find(shown), message.npos) << message;
    EXPECT_EQ(message, printable(message));
  }
}

TEST(CommandLine, ErrorsQuoteAPartOfALongArgument) {
  const std::string lengthy(100000, 'x');
  for (const Words& words :
       {Words{lengthy}, Words{"doctor", lengthy}, Words{"launch", "-n", lengthy},
        Words{"slurm", "submit", "--name", lengthy + "'", "p"}}) {
    const std::string message = refusal(words);
    EXPECT_LE(message.size(), 1200u);
    EXPECT_NE(message.find("...; see binade "), message.npos) << message;
  }
}

}  // namespace
}  // namespace binade::tool
