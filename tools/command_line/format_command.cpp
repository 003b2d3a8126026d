// The flags of binade format.
#include "flags_internal.h"

namespace binade::tool {

void add_format(CLI::App& app, Command& chosen) {
  constexpr uint32_t kMostBits = 0xffffffffu;
  const auto o = std::make_shared<FormatOptions>();
  auto* command = app.add_subcommand(
      "format", "a number format: its range, codes and values, and how a number is rounded to it");
  command
      ->add_option("NAME", o->format,
                   "e4m3fn, e5m2, f16, bf16, e8m0, ... or eXmY with options: e3m4:bias=2,nan=top")
      ->required();
  command->add_option("VALUE", o->values, "numbers to round; one below 0 as --value=-1.3")
      ->transform(number<double>(-1e300, 1e300));
  const auto more = std::make_shared<std::vector<double>>();
  command->add_option("--value", *more, "another number to round")
      ->allow_extra_args(false)
      ->transform(number<double>(-1e300, 1e300));
  command->add_option("--decode", o->codes, "codes whose value is printed")
      ->allow_extra_args(false)
      ->transform(number<uint64_t>());
  command->add_option("--rounding", o->rounding, "nearest, toward-zero or stochastic")
      ->check(CLI::IsMember({"nearest", "toward-zero", "stochastic"}))
      ->capture_default_str();
  auto* random = command->add_option("--random", o->random, "the 32 bits of stochastic rounding")
                     ->transform(number<uint32_t>(0, kMostBits))
                     ->capture_default_str();
  command->callback([o, more, random, &chosen] {
    o->values.insert(o->values.end(), more->begin(), more->end());
    check(random->count() == 0 || o->rounding == "stochastic",
          "format: --random has no effect without --rounding stochastic");
    check(o->rounding == "nearest" || !o->values.empty(),
          "format: --rounding has no effect without a number to round");
    chosen = *o;
  });
}

}  // namespace binade::tool
