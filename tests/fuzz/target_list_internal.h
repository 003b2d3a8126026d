// Every fuzz target. A new one needs a line here, a function parse_NAME in a *_targets.cpp, seeds
// in corpus/NAME (seeds.py writes most of them) and, if its format has words, a dictionary
// NAME.dict.
#pragma once
#include "tests/fuzz/targets.h"

#define BINADE_FUZZ_TARGETS(X) \
  X(image)                     \
  X(jpeg)                      \
  X(png)                       \
  X(bmp)                       \
  X(pnm)                       \
  X(tga)                       \
  X(gif)                       \
  X(webp)                      \
  X(idx)                       \
  X(idx_set)                   \
  X(store_manifest)            \
  X(store_sample)              \
  X(tar)                       \
  X(cifar)                     \
  X(csv)                       \
  X(csv_records)               \
  X(text_lines)                \
  X(checksums)                 \
  X(listing)                   \
  X(json)                      \
  X(safetensors_header)        \
  X(safetensors)               \
  X(manifest)                  \
  X(sealed_manifest)           \
  X(file_list)                 \
  X(run_lock)                  \
  X(metrics)                   \
  X(lens)                      \
  X(bench_record)              \
  X(shadow)                    \
  X(trace)                     \
  X(scaler_log)                \
  X(run_record)                \
  X(control_frames)            \
  X(listener)                  \
  X(connector)                 \
  X(roster)                    \
  X(environment)               \
  X(slurm_names)               \
  X(precision_file)            \
  X(precision_names)           \
  X(number_formats)            \
  X(policy)                    \
  X(flags)                     \
  X(command_line)              \
  X(cuda_source)               \
  X(kernel_case)

namespace binade::fuzz {
#define BINADE_DECLARED_TARGET(name) void parse_##name(Bytes);
BINADE_FUZZ_TARGETS(BINADE_DECLARED_TARGET)
#undef BINADE_DECLARED_TARGET
}  // namespace binade::fuzz
