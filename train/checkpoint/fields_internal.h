// The text fields of a checkpoint's manifest: numbers that read back equal, settings of the run.
// Internal to train.
#pragma once
#include <binade/core/tensor/create.h>
#include <binade/optim/optimizer.h>
#include <binade/train/checkpoint_store.h>

#include <cstdint>
#include <limits>
#include <map>
#include <string>

namespace binade::data {
class Loader;
}

namespace binade::train::manifest {

using Fields = std::map<std::string, std::string>;

// Sums and differences of a few of these do not overflow, and doubles hold them exactly.
inline constexpr int64_t kMostCounted = int64_t{1} << 53;

// The shortest text that reads back equal, also of infinities and NaN.
std::string shortest(double value);
std::string shortest(int64_t value);
std::string shortest(uint64_t value);
inline std::string shortest(int value) { return shortest(int64_t{value}); }

// The number in a field; each throws an Error that names the field if it is not there, is no number
// or is out of range.
double real(const Fields& fields, const std::string& name);  // any, also infinite or NaN
double real(const Fields& fields, const std::string& name, double low, double high);
int64_t count(const Fields& fields, const std::string& name, int64_t low = 0);  // to kMostCounted
int64_t integer(const Fields& fields, const std::string& name);                 // any
uint64_t natural(const Fields& fields, const std::string& name);                // any
const std::string& field(const Fields& fields, const std::string& name);

// prefix + "seed" and "offset".
void add_random(Fields& fields, const std::string& prefix, const Generator& random);
Generator random_of(const Fields& fields, const std::string& prefix);

// prefix + name for each. Counts and rates: the absolute value may be kMostCounted at most, but
// that of "best", the metric of a plateau, may be any finite number.
void add_scalars(Fields& fields, const std::string& prefix, const optim::NamedScalars& scalars);
optim::NamedScalars scalars_of(const Fields& fields, const std::string& prefix);

// The settings and the version of Binade, as "setting.NAME".
Fields with_version(const Fields& settings);
void add_settings(Fields& fields, const Fields& settings);
// Throws one error that lists every setting which differs from the checkpoint's; with `force` it
// warns.
void check_settings(const Fields& settings, const Checkpoint& checkpoint, bool force);
// Settings that may change when a run is resumed, as "stated.NAME". One warning lists each that
// differs, with its old and new value.
void add_stated(Fields& fields, const Fields& stated);
void tell_stated(const Fields& stated, const Fields& before, const std::string& path);
// True if the checkpoint was saved with another value of the setting.
bool has_other_setting(const Fields& fields, const std::string& name, const Fields& settings);
// What else than the data decides which samples the rest of an epoch has.
std::string order_of(const data::Loader& loader);
// Throws because the data differ from the checkpoint's; with `force` it warns.
void refuse_other_data(const std::string& difference, const std::string& what, bool force);
// The samples of a step: of all ranks, in micro-batches.
struct StepBatches {
  int64_t global_batch, accumulate;
  int64_t samples() const { return global_batch * accumulate; }
};
// Throws if a step has another number of samples than before; with `force`, or if only the batches
// differ, it warns (`tells`: on this rank).
void tell_other_batch(const StepBatches& now, const StepBatches& before, bool force, bool tells);
// Throws because order_of() differs in the middle of an epoch: some samples would come twice and
// others never; with `force` it warns.
void refuse_other_order(const std::string& now, const std::string& before, bool force);

}  // namespace binade::train::manifest
