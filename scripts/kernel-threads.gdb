# Looks at the threads of a kernel in host execution, which gdb does not know: they are fibers of one
# OS thread (docs/host-execution.md). Load it with `source scripts/kernel-threads.gdb`.

define kernel-threads
  set $x = binade::kernels::host::current_executor
  printf "kernel %s, block (%u,%u,%u), current thread %d\n", $x->grid.kernel, blockIdx.x, blockIdx.y, blockIdx.z, $x->current
  set $i = 0
  set $line = -1
  set $state = -1
  while $i < $x->thread_count
    set $t = $x->threads._M_impl._M_start + $i
    if $t->site.line != $line || (int)$t->state != $state
      printf "from thread %d (%u,%u,%u): ", $i, $t->index.x, $t->index.y, $t->index.z
      output $t->state
      if $t->what
        printf ", last at %s at %s:%d", $t->what, $t->site.file, $t->site.line
      end
      printf "\n"
    end
    set $line = $t->site.line
    set $state = (int)$t->state
    set $i = $i + 1
  end
end
document kernel-threads
Lists the threads of the block in progress: state, and the barrier or warp collective called last.
end

define kernel-thread
  set $t = binade::kernels::host::current_executor->threads._M_impl._M_start + $arg0
  if !$t->fiber || $t->state == 0 || $arg0 == binade::kernels::host::current_executor->current
    printf "thread %d does not wait\n", $arg0
  else
    set $kt_sp = $sp
    set $kt_pc = $pc
    set $kt_rbp = $rbp
    set $kt_rbx = $rbx
    set $kt_r12 = $r12
    set $kt_r13 = $r13
    set $kt_r14 = $r14
    set $kt_r15 = $r15
    set $kt_saved = (long*)$t->fiber->stack_pointer
    set $r15 = $kt_saved[0]
    set $r14 = $kt_saved[1]
    set $r13 = $kt_saved[2]
    set $r12 = $kt_saved[3]
    set $rbx = $kt_saved[4]
    set $rbp = $kt_saved[5]
    set $sp = (long)($kt_saved + 7)
    set $pc = $kt_saved[6]
    backtrace
  end
end
document kernel-thread
kernel-thread N: moves to waiting thread N of the block and shows its stack. Look around with frame and
print, then return with kernel-return before the program goes on. x86-64 only.
end

define kernel-return
  select-frame 0
  set $sp = $kt_sp
  set $rbp = $kt_rbp
  set $rbx = $kt_rbx
  set $r12 = $kt_r12
  set $r13 = $kt_r13
  set $r14 = $kt_r14
  set $r15 = $kt_r15
  set $pc = $kt_pc
end
document kernel-return
Back to the thread that runs, after kernel-thread.
end
