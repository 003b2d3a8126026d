// binade slurm submit: submits a distributed program as a batch job.
#include "commands.h"

#include <cstdio>

namespace binade::tool {

int run(const SlurmSubmitOptions& o) {
  const std::string script = dist::slurm_script(o.job);
  if (!o.dry_run) {
    return dist::slurm_submit(script);
  }
  std::fputs(script.c_str(), stdout);
  return 0;
}

}  // namespace binade::tool
