// parity_runner: checks the engine against files of PyTorch cases. See --help.
#include <binade/kernels/base/error.h>
#include <binade/kernels/base/math_mode.h>

#include <charconv>
#include <cstdio>
#include <optional>
#include <set>

#include <tests/parity/parity_case.h>

namespace binade::parity {
namespace {

constexpr const char* kHelp =
    R"(parity_runner FILE... [--device cpu|emulated|cuda] [--dtype f64|f32|f16|bf16] [--mode fast|precise]
              [--case NAME] [--every N] [--allow-not-covered]

Runs the cases of the files (format binade-parity-1) in the engine and compares results and
gradients. Without --dtype all four dtypes are run in turn: every case in f64 and f32, and the
cases whose inputs are exact in 16 bits (name ends in _f16) in f16 and bf16. Optimizers, clipping,
schedules, scaler and initialisation run in f64 and f32 only.

--mode sets which algorithms f32 on the CPU may use, fast unless given: fast includes Winograd's
convolution, precise computes plain sums. --case runs the cases of this name only, --every N the
first case of each op and every N-th after it. Cases of ops that the engine does not have count as
not covered, which is a failure unless --allow-not-covered is given.

Exit status: 0 if all passed, 1 if anything failed or is not covered, 2 on wrong usage.
)";

struct Arguments {
  std::vector<std::string> files;
  std::optional<DType> dtype;
  std::string only_case, device = "cpu";
  int every = 1;
  kernels::MathMode mode = kernels::MathMode::fast;
  bool allow_not_covered = false, help = false;
};

struct Usage : Error {
  using Error::Error;
};

DType parse_dtype(const std::string& name) {
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    if (name == to_string(dtype)) {
      return dtype;
    }
  }
  throw Usage(text("--dtype: got ", name, ", expected f64, f32, f16 or bf16"));
}

kernels::MathMode parse_mode(const std::string& name) {
  try {
    return kernels::parse_math_mode(name, "--mode");
  } catch (const Error& error) {
    throw Usage(error.what());
  }
}

int parse_every(const std::string& text) {
  int every = 0;
  const char* end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data(), end, every);
  if (status != std::errc() || rest != end || every < 1) {
    throw Usage("--every: got " + text + ", expected a number from 1");
  }
  return every;
}

Arguments parse_arguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const auto value = [&]() -> std::string {
      return i + 1 < argc ? argv[++i] : throw Usage(text(flag, " needs a value"));
    };
    if (flag == "--help") {
      arguments.help = true;
    } else if (flag == "--dtype") {
      arguments.dtype = parse_dtype(value());
    } else if (flag == "--device") {
      arguments.device = value();
    } else if (flag == "--mode") {
      arguments.mode = parse_mode(value());
    } else if (flag == "--case") {
      arguments.only_case = value();
    } else if (flag == "--every") {
      arguments.every = parse_every(value());
    } else if (flag == "--allow-not-covered") {
      arguments.allow_not_covered = true;
    } else if (flag.starts_with("-")) {
      throw Usage(text("unknown flag ", flag, "; see --help"));
    } else {
      arguments.files.push_back(flag);
    }
  }
  try {
    Device::parse(arguments.device);
  } catch (const Error& error) {
    throw Usage(text("--device: ", error.what()));
  }
  setenv("BINADE_TEST_DEVICE", arguments.device.c_str(), 1);  // read by kernels::test_device()
  if (arguments.files.empty() && !arguments.help) {
    throw Usage("no case file given; see --help");
  }
  return arguments;
}

struct Counts {
  int passed = 0, failed = 0, not_covered = 0;
};

bool applies(const CaseFile& file, const Case& c, DType dtype) {
  return !is_half(dtype) || (c.is_half_exact() && !is_training_op(file.family()));
}

void run_one(const CaseFile& file, const Case& c, DType dtype, Counts& counts,
             std::set<std::string>& missing) {
  std::string wrong;
  try {
    wrong = run_case(file, c, dtype);
  } catch (const NotCovered& reason) {
    missing.insert(reason.what);
    ++counts.not_covered;
    return;
  } catch (const std::exception& error) {
    wrong = text("error: ", error.what());
  }
  ++(wrong.empty() ? counts.passed : counts.failed);
  if (!wrong.empty()) {
    std::printf("FAILED %s %s --dtype %s --case %s\n", file.family().c_str(), wrong.c_str(),
                to_string(dtype), c.name.c_str());
  }
}

void run_file(const std::string& path, const Arguments& arguments, Counts& total) {
  const CaseFile file(path);
  std::set<std::string> missing;
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    if (arguments.dtype.value_or(dtype) != dtype) {
      continue;
    }
    Counts counts;
    std::map<std::string, int> seen;
    for (const Case& c : file.cases()) {
      if (applies(file, c, dtype) &&
          (arguments.only_case.empty() || c.name == arguments.only_case) &&
          seen[c.op]++ % arguments.every == 0) {
        run_one(file, c, dtype, counts, missing);
      }
    }
    std::printf("%-12s %-4s %4d passed, %d failed, %d not covered\n", file.family().c_str(),
                to_string(dtype), counts.passed, counts.failed, counts.not_covered);
    total.passed += counts.passed;
    total.failed += counts.failed;
    total.not_covered += counts.not_covered;
  }
  for (const std::string& op : missing) {
    std::printf("%-12s not covered: %s\n", file.family().c_str(), op.c_str());
  }
}

int run(int argc, char** argv) {
  const Arguments arguments = parse_arguments(argc, argv);
  if (arguments.help) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  kernels::set_math_mode(arguments.mode);
  Counts total;
  for (const std::string& path : arguments.files) {
    run_file(path, arguments, total);
  }
  std::printf("%d passed, %d failed, 0 skipped, %d not covered\n", total.passed, total.failed,
              total.not_covered);
  return total.failed > 0 || (total.not_covered > 0 && !arguments.allow_not_covered) ? 1 : 0;
}

}  // namespace
}  // namespace binade::parity

int main(int argc, char** argv) {
  try {
    return binade::parity::run(argc, argv);
  } catch (const binade::parity::Usage& error) {
    std::fprintf(stderr, "binade: error: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "binade: error: %s\n", error.what());
    return 1;
  }
}
