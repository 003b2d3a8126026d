// hostcuda.cpp - fiber executor, warp collectives, tensor-core emulation, race detector.
// Never compiled with race instrumentation; compiled with ASan/UBSan in the sanitizer build.
#include <binade/kernels/host/primitives.h>

#include <atomic>
#include <string>

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>
#if defined(BINADE_HOST_UCONTEXT)
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#define BINADE_HOST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BINADE_HOST_ASAN 1
#endif
#endif
#if BINADE_HOST_ASAN
extern "C" void __asan_describe_address(void*);
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if !defined(BINADE_HOST_UCONTEXT)
#if !defined(__x86_64__)
#error "add a context switch for this architecture or build with -DBINADE_HOST_UCONTEXT"
#endif
extern "C" void binade_switch(void** save, void* to);
asm(R"(.text
.globl binade_switch
.type binade_switch,@function
binade_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size binade_switch,.-binade_switch
)");
#endif

namespace binade::kernels::host {
namespace {
constexpr size_t kStack = 256 * 1024, kGuard = 4096, kMaxThreads = 1024, kMaxSmem = 227 * 1024;
struct Stats { uint64_t switches, collectives, blocks, threads; };
enum class St : uint8_t { fresh, ready, barrier, warp, done };
struct Fiber {
    void* sp = nullptr; char* lo = nullptr; size_t size = 0, colour = 0; void* fake = nullptr; bool live = false;
#if defined(BINADE_HOST_UCONTEXT)
    ucontext_t uc;
#endif
};
struct Async { void* dst; const void* src; int bytes, group; };
struct Lane {
    Fiber* fiber; St st; int bar; uint3 tid; uint32_t mask; void* io; Exchange fn;
    const char *what, *file; int line; int committed; std::vector<Async> q;
};
struct Bar { int arrived, expected; const char* file; int line; };
struct Pend { uint32_t mask, arrived; Exchange fn; const char* file; int line; };
struct Warp { uint32_t ready, exited, all; int npend; Pend pend[32]; uint32_t vc[32][32]; };
struct Exec {
    std::vector<Lane> lane; std::vector<Warp> warp; Bar bar[16];
    uint64_t wready[1]; int nthreads = 0, live = 0, exited = 0, cur = -1; uint32_t bar_epoch = 0, blk = 0;
    std::vector<std::unique_ptr<Fiber>> fibers; std::vector<Fiber*> pool;
    Fiber main; char* stacks = nullptr; char* smem = nullptr; size_t smem_size = 0;
    Body fn = nullptr; void* ctx = nullptr; std::string error; bool failed = false; uint64_t rng = 1; Options opt; Stats st{};
    char *main_lo = nullptr, *main_hi = nullptr; uint64_t gen = 0, smem_gen = 0, launch_gen = 0; int spins = 0;
};
thread_local Exec* X = nullptr;
Stats g_stats{};

std::string where(const Lane& l, int idx) {
    char b[256];
    std::snprintf(b, sizeof b, "thread (%u,%u,%u) [warp %d lane %d] at %s %s:%d", l.tid.x, l.tid.y, l.tid.z, idx / 32, idx % 32,
                  l.what ? l.what : "?", l.file ? l.file : "?", l.line);
    return b;
}
void ctx_switch(Fiber& from, Fiber& to, bool dying = false) {
    (void)dying;
#if BINADE_HOST_ASAN && !defined(BINADE_NO_ANNOTATE)
    __sanitizer_start_switch_fiber(dying ? nullptr : &from.fake, to.lo, to.size);
#endif
    X->st.switches++;
#if defined(BINADE_HOST_UCONTEXT)
    swapcontext(&from.uc, &to.uc);
#else
    binade_switch(&from.sp, to.sp);
#endif
#if BINADE_HOST_ASAN && !defined(BINADE_NO_ANNOTATE)
    __sanitizer_finish_switch_fiber(from.fake, nullptr, nullptr);
#endif
}
inline uint32_t rnd(Exec& x) { x.rng ^= x.rng << 13; x.rng ^= x.rng >> 7; x.rng ^= x.rng << 17; return uint32_t(x.rng >> 32); }
inline int pick_bit(Exec& x, uint32_t m, int from) {  // next set bit after `from` in schedule order
    if (x.opt.schedule == Schedule::random) {
        for (int k = int(rnd(x) % unsigned(__builtin_popcount(m))); k > 0; k--) m &= m - 1;
        return __builtin_ctz(m);
    }
    if (x.opt.schedule == Schedule::forward) {
        uint32_t hi = from >= 31 ? 0 : m & (~0u << (from + 1));
        return __builtin_ctz(hi ? hi : m);
    }
    uint32_t lo = from <= 0 ? 0 : m & ((1u << from) - 1);
    return 31 - __builtin_clz(lo ? lo : m);
}
inline int pick(Exec& x) {
    uint32_t wr = uint32_t(x.wready[0]);
    if (!wr) return -1;
    int cw = x.cur < 0 ? (x.opt.schedule == Schedule::forward ? 31 : 0) : x.cur / 32, cl = x.cur < 0 ? (x.opt.schedule == Schedule::forward ? 31 : 0) : x.cur % 32;
    bool stay = (wr >> cw & 1) && (x.opt.schedule != Schedule::random || rnd(x) % 64);  // greedy warps expose more races
    int w = stay ? cw : pick_bit(x, wr, cw);
    return w * 32 + pick_bit(x, x.warp[size_t(w)].ready, stay ? cl : (x.opt.schedule == Schedule::forward ? 31 : 0));
}
inline void set_ready(Exec& x, int i) { x.lane[size_t(i)].st = St::ready; x.warp[size_t(i / 32)].ready |= 1u << (i % 32); x.wready[0] |= 1ull << (i / 32); }
inline void clear_ready(Exec& x, int i) {
    auto& w = x.warp[size_t(i / 32)];
    if (!(w.ready &= ~(1u << (i % 32)))) x.wready[0] &= ~(1ull << (i / 32));
}
void entry();
Fiber* take_fiber(Exec& x) {
    Fiber* f = x.pool.back(); x.pool.pop_back();
    if (f->live) return f;
    f->live = true; f->fake = nullptr;
#if BINADE_HOST_ASAN
    ASAN_UNPOISON_MEMORY_REGION(f->lo, f->size);
#endif
#if defined(BINADE_HOST_UCONTEXT)
    getcontext(&f->uc); f->uc.uc_stack.ss_sp = f->lo; f->uc.uc_stack.ss_size = f->size; f->uc.uc_link = nullptr;
    makecontext(&f->uc, entry, 0);
#else
    void** top = reinterpret_cast<void**>(f->lo + f->size - f->colour);
    top[-1] = nullptr; top[-2] = reinterpret_cast<void*>(&entry);
    for (int i = 3; i <= 8; i++) top[-i] = nullptr;
    f->sp = top - 8;
#endif
    return f;
}
inline void enter(Exec& x, int i) { x.cur = i; threadIdx = x.lane[size_t(i)].tid; }
[[noreturn]] void die(Exec& x, std::string&& msg, Fiber& self) {  // the fiber is abandoned: nothing on its stack may own memory
    x.error = std::move(msg); x.failed = true;
    ctx_switch(self, x.main, true);
    std::abort();
}
[[noreturn]] void deadlock(Exec& x, Fiber& self) {
    std::string m = "deadlock: no runnable thread in block;";
    int shown = 0;
    const char* f = nullptr; int ln = -1;
    for (int i = 0; i < x.nthreads && shown < 6; i++) {
        auto& l = x.lane[size_t(i)];
        if (l.st == St::done || (l.file == f && l.line == ln)) continue;
        m += "\n    waiting: " + where(l, i); f = l.file; ln = l.line; shown++;
    }
    if (x.exited) m += "\n    " + std::to_string(x.exited) + " thread(s) already exited";
    die(x, std::move(m), self);
}
void go(Exec& x, Fiber& self) {  // switch from self to whatever runs next
    int n = pick(x);
    if (n < 0) deadlock(x, self);
    auto& l = x.lane[size_t(n)];
    if (!l.fiber) l.fiber = take_fiber(x);
    enter(x, n);
    if (l.fiber != &self) ctx_switch(self, *l.fiber);
}
void block_current(Exec& x) {
    int me = x.cur;
    clear_ready(x, me);
    go(x, *x.lane[size_t(me)].fiber);
    threadIdx = x.lane[size_t(me)].tid;
}
void entry() {
#if BINADE_HOST_ASAN && !defined(BINADE_NO_ANNOTATE)
    __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
    for (;;) {
        Exec& x = *X;
        int me = x.cur;
        Fiber& self = *x.lane[size_t(me)].fiber;
        x.fn(x.ctx);
        auto& l = x.lane[size_t(me)];
        l.st = St::done; l.fiber = nullptr;
        if (!l.q.empty()) l.q.clear();
        clear_ready(x, me);
        x.warp[size_t(me / 32)].exited |= 1u << (me % 32);
        x.live--; x.exited++; x.st.threads++;
        if (x.opt.strict) {
            if (x.bar[0].arrived) die(x, "thread " + std::to_string(me) + " exited while other threads wait at __syncthreads " + x.bar[0].file + ":" + std::to_string(x.bar[0].line), self);
            for (int i = me & ~31; i < std::min(x.nthreads, (me & ~31) + 32); i++) {
                auto& o = x.lane[size_t(i)];
                if (o.st == St::warp && (o.mask >> (me % 32) & 1))
                    die(x, "lane " + std::to_string(me % 32) + " exited but is named in the mask of a waiting lane: " + where(o, i), self);
            }
        }
        if (!x.live) { x.pool.push_back(&self); ctx_switch(self, x.main); continue; }
        int n = pick(x);
        if (n < 0) deadlock(x, self);
        auto& nl = x.lane[size_t(n)];
        enter(x, n);
        if (!nl.fiber) { nl.fiber = &self; continue; }  // never-blocked threads cost no switch
        x.pool.push_back(&self);
        ctx_switch(self, *nl.fiber);
    }
}
void exec_init(Exec& x) {
    size_t slot = kStack + kGuard, total = slot * kMaxThreads;
    x.stacks = static_cast<char*>(mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    for (size_t i = 0; i < kMaxThreads; i++) {
        mprotect(x.stacks + i * slot, kGuard, PROT_NONE);
        x.fibers.push_back(std::make_unique<Fiber>());
        x.fibers.back()->lo = x.stacks + i * slot + kGuard; x.fibers.back()->size = kStack; x.fibers.back()->colour = (i * 576) % 4096;
    }
    x.smem = static_cast<char*>(std::aligned_alloc(1024, kMaxSmem + 1024));
    pthread_attr_t a; void* lo; size_t sz;
    pthread_getattr_np(pthread_self(), &a); pthread_attr_getstack(&a, &lo, &sz); pthread_attr_destroy(&a);
    x.main.lo = static_cast<char*>(lo); x.main.size = sz; x.main_lo = x.main.lo; x.main_hi = x.main.lo + sz;
}
void run_block(Exec& x, dim3 block, size_t smem, uint3 bid, uint32_t linear) {
    int n = int(block.x * block.y * block.z), nw = (n + 31) / 32;
    x.nthreads = x.live = n; x.exited = 0; x.bar_epoch = 0; x.blk = linear; x.failed = false; x.wready[0] = 0; x.spins = 0;
    std::string().swap(x.error);
    if (int(x.lane.size()) < n) x.lane.resize(size_t(n));
    if (int(x.warp.size()) < nw) x.warp.resize(size_t(nw));
    std::memset(x.bar, 0, sizeof x.bar);
    for (int w = 0; w < nw; w++) {
        uint32_t all = (w + 1) * 32 <= n ? ~0u : (1u << (n - w * 32)) - 1;
        x.warp[size_t(w)].ready = x.warp[size_t(w)].all = all; x.warp[size_t(w)].exited = 0; x.warp[size_t(w)].npend = 0;
        std::memset(x.warp[size_t(w)].vc, 0, sizeof x.warp[0].vc);
        for (int k = 0; k < 32; k++) x.warp[size_t(w)].vc[k][k] = 1;
        x.wready[0] |= 1ull << w;
    }
    int i = 0;
    for (unsigned z = 0; z < block.z; z++) for (unsigned y = 0; y < block.y; y++) for (unsigned c = 0; c < block.x; c++, i++) {
        auto& l = x.lane[size_t(i)];
        l.fiber = nullptr; l.st = St::fresh; l.tid = {c, y, z}; l.what = l.file = nullptr; l.line = 0; l.committed = 0;
    }
    blockIdx = bid;
    if (smem) std::memset(x.smem, 0xff, smem);  // uninitialised shared memory reads as NaN
    x.smem_gen = ++x.gen;
    x.pool.clear();
    for (size_t k = x.fibers.size(); k-- > 0;) x.pool.push_back(x.fibers[k].get());
    x.cur = -1;
    int first = pick(x);
    x.lane[size_t(first)].fiber = take_fiber(x);
    enter(x, first);
    ctx_switch(x.main, *x.lane[size_t(first)].fiber);
    x.cur = -1; x.st.blocks++;
    if (x.failed) {
        for (auto& f : x.fibers) f->live = false;
        for (auto& l : x.lane) l.q.clear();
    }
}
// The executor itself is built without ASan (5x faster); it checks user pointers explicitly.
void check_addr(const void* p, size_t n, const char* what) {
#if BINADE_HOST_ASAN
    if (void* bad = __asan_region_is_poisoned(const_cast<void*>(p), n)) {
        char b[160]; std::snprintf(b, sizeof b, "%s: invalid address %p (access of %zu bytes at %p, see ASan report)", what, bad, n, p);
        __asan_describe_address(bad);
        fail_kernel(b);
    }
#else
    (void)p; (void)n; (void)what;
#endif
}
Lane& me() {
    if (!X || X->cur < 0) throw KernelError("device function called outside a kernel");
    return X->lane[size_t(X->cur)];
}
}  // namespace

Options& options() {
    static Options o = [] {
        Options r;
        if (auto* s = std::getenv("BINADE_HOST_SCHEDULE")) r.schedule = *s == 'r' && s[1] == 'a' ? Schedule::random : *s == 'r' ? Schedule::reverse : Schedule::forward;
        if (auto* s = std::getenv("BINADE_HOST_SEED")) r.seed = std::strtoull(s, nullptr, 10);
        if (auto* s = std::getenv("BINADE_HOST_THREADS")) r.os_threads = std::atoi(s);
        return r;
    }();
    return o;
}
bool inside_kernel() { return X && X->cur >= 0; }
void fail_kernel(std::string msg) {
    if (!X || X->cur < 0) throw KernelError(msg);
    auto& l = me();
    char b[128]; std::snprintf(b, sizeof b, "block (%u,%u,%u) thread (%u,%u,%u): ", blockIdx.x, blockIdx.y, blockIdx.z, l.tid.x, l.tid.y, l.tid.z);
    msg.insert(0, b);
    die(*X, std::move(msg), *l.fiber);
}
void* shared_base(size_t need) {
    if (need > X->smem_size) fail_kernel("shared_mem<T>: sizeof(T)=" + std::to_string(need) + " exceeds launch smem_bytes=" + std::to_string(X->smem_size));
    return X->smem;
}
void run_grid(dim3 grid, dim3 block, size_t smem, Body fn, void* ctx) {
    size_t n = size_t(block.x) * block.y * block.z;
    if (!n || n > kMaxThreads || block.z > 64) throw KernelError("invalid block dimensions");
    if (!grid.x || !grid.y || !grid.z || grid.y > 65535 || grid.z > 65535 || grid.x > 0x7fffffffu) throw KernelError("invalid grid dimensions");
    if (smem > kMaxSmem) throw KernelError("too much shared memory");
    if (X && X->cur >= 0) throw KernelError("nested launch");
    Options opt = options();
    uint64_t total = uint64_t(grid.x) * grid.y * grid.z;
    std::atomic<uint64_t> next{0}, failed{0};
    std::string error;
    auto worker = [&] {
        static thread_local std::unique_ptr<Exec, void (*)(Exec*)> own(nullptr, [](Exec* e) { munmap(e->stacks, (kStack + kGuard) * kMaxThreads); std::free(e->smem); delete e; });
        if (!own) { own.reset(new Exec); exec_init(*own); }
        Exec& x = *own; X = &x;
        x.fn = fn; x.ctx = ctx; x.opt = opt; x.smem_size = smem; x.st = {}; ++x.gen;
        x.rng = opt.seed * 0x9e3779b97f4a7c15ull + 0x1234567;
        gridDim = grid; blockDim = block;
#if BINADE_HOST_ASAN
        ASAN_UNPOISON_MEMORY_REGION(x.smem, smem);
        ASAN_POISON_MEMORY_REGION(x.smem + smem, kMaxSmem + 1024 - smem);
#endif
        x.launch_gen = x.gen;
        for (uint64_t b; !failed && (b = next++) < total;) {
            if (opt.schedule == Schedule::reverse) b = total - 1 - b;
            run_block(x, block, smem, {unsigned(b % grid.x), unsigned(b / grid.x % grid.y), unsigned(b / grid.x / grid.y)}, uint32_t(b));
            if (x.failed && !failed.exchange(1)) error = x.error;
        }
#if BINADE_HOST_ASAN
        ASAN_UNPOISON_MEMORY_REGION(x.smem, kMaxSmem + 1024);
#endif
        static std::atomic_flag lock; while (lock.test_and_set()) {}
        g_stats.switches += x.st.switches; g_stats.collectives += x.st.collectives; g_stats.blocks += x.st.blocks; g_stats.threads += x.st.threads;
        lock.clear();
    };
    int nt = int(std::min<uint64_t>(uint64_t(std::max(1, opt.os_threads)), total));
    std::vector<std::thread> ts;
    for (int i = 1; i < nt; i++) ts.emplace_back(worker);
    worker();
    for (auto& t : ts) t.join();
    if (failed) throw KernelError(error);
}

// ---- barriers and warp collectives ------------------------------------------------------------
void barrier(int id, int nthreads, Site site) { const char* file = site.file; int line = site.line; (void)file; (void)line;
    Lane& l = me(); Exec& x = *X;
    if (id < 0 || id > 15) fail_kernel("barrier id out of range");
    Bar& b = x.bar[id];
    int expected = nthreads ? nthreads : x.nthreads;
    l.what = id ? "bar.sync" : "__syncthreads"; l.file = file; l.line = line;
    if (x.opt.strict && !nthreads && x.exited) fail_kernel("__syncthreads " + std::string(file) + ":" + std::to_string(line) + " after " + std::to_string(x.exited) + " thread(s) exited");
    if (b.arrived == 0) { b.expected = expected; b.file = file; b.line = line; }
    else if (b.expected != expected) fail_kernel("bar.sync: thread counts differ");
    else if (x.opt.strict && (b.line != line || b.file != file))
        fail_kernel("divergent barrier: this thread is at " + std::string(file) + ":" + std::to_string(line) + ", others wait at " + b.file + ":" + std::to_string(b.line));
    if (++b.arrived < b.expected - (nthreads ? 0 : x.exited)) { l.st = St::barrier; l.bar = id; block_current(x); return; }
    b.arrived = 0;
    for (int i = 0; i < x.nthreads; i++) if (x.lane[size_t(i)].st == St::barrier && x.lane[size_t(i)].bar == id) set_ready(x, i);
    if (!id) x.bar_epoch++;
}
void collective(uint32_t mask, Exchange fn, void* io, const char* what, bool orders, Site site) { const char* file = site.file; int line = site.line; (void)file; (void)line;
    Lane& l = me(); Exec& x = *X;
    int base = x.cur & ~31, ln = x.cur & 31;
    Warp& w = x.warp[size_t(base / 32)];
    l.what = what; l.file = file; l.line = line; l.mask = mask; l.io = io; l.fn = fn;
    if (!(mask >> ln & 1)) fail_kernel(std::string(what) + ": calling lane is not in its own mask at " + file + ":" + std::to_string(line));
    uint32_t need = mask & w.all;
    if (x.opt.strict && need != mask && mask != ~0u) fail_kernel(std::string(what) + ": mask names lanes beyond the block");
    if (x.opt.strict && (need & w.exited)) fail_kernel(std::string(what) + ": mask names exited lanes at " + file + ":" + std::to_string(line));
    need &= ~w.exited;
    int k = 0;
    for (; k < w.npend; k++) {
        Pend& p = w.pend[k];
        if (p.mask == mask && p.fn == fn && (!x.opt.strict || (p.line == line && p.file == file))) break;
        if ((p.arrived & mask) && (p.mask >> ln & 1)) {  // a lane I wait for waits for me elsewhere
            int other = base + __builtin_ctz(p.arrived & mask);
            fail_kernel("warp collective mismatch: this lane is at " + std::string(what) + " " + file + ":" + std::to_string(line) + " mask " + std::to_string(mask) + "; " +
                 where(x.lane[size_t(other)], other) + " mask " + std::to_string(p.mask));
        }
    }
    if (k == w.npend) w.pend[w.npend++] = {mask, 0, fn, file, line};
    if (((w.pend[k].arrived |= 1u << ln) & need) != need) { l.st = St::warp; block_current(x); return; }
    w.pend[k] = w.pend[--w.npend];
    void* ios[32];
    for (uint32_t m = need; m; m &= m - 1) ios[__builtin_ctz(m)] = x.lane[size_t(base + __builtin_ctz(m))].io;
    fn(ios, need);
    x.st.collectives++;
    if (orders) {
        uint32_t j[32] = {};
        for (uint32_t m = need; m; m &= m - 1) { auto& v = w.vc[__builtin_ctz(m)]; for (int k = 0; k < 32; k++) j[k] = std::max(j[k], v[k]); }
        for (uint32_t m = need; m; m &= m - 1) { int i = __builtin_ctz(m); std::memcpy(w.vc[i], j, sizeof j); w.vc[i][i]++; }
    }
    w.ready |= need; x.wready[0] |= 1ull << (base / 32);
    for (uint32_t m = need; m; m &= m - 1) x.lane[size_t(base + __builtin_ctz(m))].st = St::ready;
}
void yield() {
    Exec& x = *X; int i = x.cur; me().what = "spin";
    if (++x.spins > 1000000) deadlock(x, *me().fiber);
    Lane& l = me(); clear_ready(x, i);
    if (!x.wready[0]) { set_ready(x, i); return; }
    int n = pick(x); set_ready(x, i);
    auto& t = x.lane[size_t(n)]; if (!t.fiber) t.fiber = take_fiber(x);
    enter(x, n); ctx_switch(*l.fiber, *t.fiber); threadIdx = l.tid;
}
#define LANES(i, mask) for (uint32_t m_ = (mask), i = 0; m_ && (i = uint32_t(__builtin_ctz(m_)), true); m_ &= m_ - 1)
void no_exchange(void* const*, uint32_t) {}
void shuffle_lanes(void* const* io, uint32_t mask) {
    LANES(i, mask) {
        auto& s = *static_cast<ShuffleLane*>(io[i]);
        int l = int(i), seg = l & ~(s.width - 1), end = seg + s.width, src = l;
        switch (s.mode) {
            case Shuffle::index: src = seg + (s.argument & (s.width - 1)); break;
            case Shuffle::up: src = l - s.argument < seg ? l : l - s.argument; break;
            case Shuffle::down: src = l + s.argument >= end ? l : l + s.argument; break;
            default: src = (l ^ s.argument) >= end ? l : (l ^ s.argument);
        }
        if (!(mask >> src & 1)) fail_kernel("shuffle: lane " + std::to_string(l) + " reads lane " + std::to_string(src) + ", which does not take part");
        std::memcpy(s.result, static_cast<ShuffleLane*>(io[src])->value, size_t(s.size));
    }
}
void ballot_lanes(void* const* io, uint32_t mask) {
    uint32_t r = 0;
    LANES(i, mask) r |= static_cast<VoteLane*>(io[i])->value << i;
    LANES(i, mask) static_cast<VoteLane*>(io[i])->result = r;
}
void sum_lanes(void* const* io, uint32_t mask) {
    uint32_t r = 0;
    LANES(i, mask) r += static_cast<VoteLane*>(io[i])->value;
    LANES(i, mask) static_cast<VoteLane*>(io[i])->result = r;
}
void max_lanes(void* const* io, uint32_t mask) {
    uint32_t r = 0;
    LANES(i, mask) r = std::max(r, static_cast<VoteLane*>(io[i])->value);
    LANES(i, mask) static_cast<VoteLane*>(io[i])->result = r;
}
static void race_access(const void* p, size_t n, int kind, void* pc, int tid);
enum { kRead, kWrite, kAtomic, kPending };
void load_matrix_lanes(void* const* io, uint32_t mask) {
    if (mask != ~0u) fail_kernel("ldmatrix needs a full warp");
    uint16_t m[32][8];
    for (int l = 0; l < 32; l++) {
        auto& d = *static_cast<LoadMatrixLane*>(io[l]);
        auto a = static_cast<const char*>(d.row);
        if (a < X->smem || a + 16 > X->smem + X->smem_size) fail_kernel("ldmatrix: row address of lane " + std::to_string(l) + " outside shared memory");
        if ((a - X->smem) % 16) fail_kernel("ldmatrix: row address of lane " + std::to_string(l) + " not 16-byte aligned");
        check_addr(a, 16, "ldmatrix");
        race_access(a, 16, kRead, nullptr, (X->cur & ~31) + l);
        std::memcpy(m[l], a, 16);
    }
    for (int l = 0; l < 32; l++) {
        auto& d = *static_cast<LoadMatrixLane*>(io[l]);
        for (int i = 0; i < 4; i++) {
            auto* t = &m[i * 8];
            uint32_t lo = d.transposed ? t[2 * (l % 4)][l / 4] : t[l / 4][2 * (l % 4)], hi = d.transposed ? t[2 * (l % 4) + 1][l / 4] : t[l / 4][2 * (l % 4) + 1];
            d.fragment[i] = lo | hi << 16;
        }
    }
}
template <class T> static void product_lanes(void* const* io, uint32_t mask) {
    if (mask != ~0u) fail_kernel("mma.sync needs a full warp");
    alignas(64) float A[16][16], Bk[16][8], D[16][8];
    auto lo = [](uint32_t v) { return float(T::from_bits(uint16_t(v))); };
    auto hi = [](uint32_t v) { return float(T::from_bits(uint16_t(v >> 16))); };
    for (int l = 0; l < 32; l++) {
        auto& s = *static_cast<ProductLane*>(io[l]);
        int g = l / 4, t = l % 4;
        for (int r = 0; r < 4; r++) {
            int row = g + (r & 1) * 8, col = 2 * t + (r >> 1) * 8;
            A[row][col] = lo(s.a[r]); A[row][col + 1] = hi(s.a[r]);
        }
        for (int r = 0; r < 2; r++) { Bk[2 * t + r * 8][g] = lo(s.b[r]); Bk[2 * t + r * 8 + 1][g] = hi(s.b[r]); }
        for (int r = 0; r < 4; r++) D[g + (r >> 1) * 8][2 * t + (r & 1)] = s.d[r];
    }
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 16; k++) {
            float a = A[i][k];
            for (int j = 0; j < 8; j++) D[i][j] += a * Bk[k][j];
        }
    for (int l = 0; l < 32; l++) {
        auto& s = *static_cast<ProductLane*>(io[l]);
        for (int r = 0; r < 4; r++) s.d[r] = D[l / 4 + (r >> 1) * 8][2 * (l % 4) + (r & 1)];
    }
}
void product_f16_lanes(void* const* io, uint32_t mask) { product_lanes<half>(io, mask); }
void product_bf16_lanes(void* const* io, uint32_t mask) { product_lanes<bfloat16>(io, mask); }
// ---- cp.async -----------------------------------------------------------------------------------
void copy_async(void* dst, const void* src, int, int src_bytes) {
    Lane& l = me(); auto d = static_cast<char*>(dst);
    if (d < X->smem || d + 16 > X->smem + X->smem_size) fail_kernel("cp.async: destination outside shared memory");
    if ((d - X->smem) % 16 || reinterpret_cast<uintptr_t>(src) % 16) fail_kernel("cp.async: address not 16-byte aligned");
    if (src_bytes < 0 || src_bytes > 16) fail_kernel("cp.async: bad src size");
    check_addr(src, size_t(src_bytes), "cp.async source"); check_addr(dst, 16, "cp.async destination");
    race_access(dst, 16, kPending, __builtin_return_address(0), X->cur);
    if (X->opt.late_async) std::memset(dst, 0xff, 16);
    else { std::memset(dst, 0, 16); std::memcpy(dst, src, size_t(src_bytes)); }
    l.q.push_back({dst, src, src_bytes, l.committed});
}
void commit_async() { me().committed++; }
void wait_async(int n) {
    Lane& l = me(); size_t k = 0;
    for (; k < l.q.size() && l.q[k].group < l.committed - n; k++) {
        auto& a = l.q[k];
        race_access(a.dst, 16, kWrite, __builtin_return_address(0), X->cur);
        if (X->opt.late_async) { std::memset(a.dst, 0, 16); std::memcpy(a.dst, a.src, size_t(a.bytes)); }
    }
    l.q.erase(l.q.begin(), l.q.begin() + ptrdiff_t(k));
}
// ---- atomics ------------------------------------------------------------------------------------
template <class U, class F> static U rmw(void* p, F f) {
    check_addr(p, sizeof(U), "atomic");
    race_access(p, sizeof(U), kAtomic, __builtin_return_address(0), X->cur);
    auto* q = static_cast<U*>(p); U o = __atomic_load_n(q, __ATOMIC_RELAXED), n;
    do { n = f(o); } while (!__atomic_compare_exchange_n(q, &o, n, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    return o;
}
template <class T> static T bits(uint32_t u) { T t; std::memcpy(&t, &u, 4); return t; }
template <class T> static uint32_t ubits(T t) { uint32_t u; std::memcpy(&u, &t, 4); return u; }
float atomic_add(float* p, float v) { return bits<float>(rmw<uint32_t>(p, [v](uint32_t o) { return ubits(bits<float>(o) + v); })); }
int atomic_add(int* p, int v) { return int(rmw<uint32_t>(p, [v](uint32_t o) { return o + uint32_t(v); })); }
unsigned atomic_add(unsigned* p, unsigned v) { return rmw<uint32_t>(p, [v](uint32_t o) { return o + v; }); }
double atomic_add(double* p, double v) { return std::bit_cast<double>(rmw<uint64_t>(p, [v](uint64_t o) { return std::bit_cast<uint64_t>(std::bit_cast<double>(o) + v); })); }
unsigned long long atomic_add(unsigned long long* p, unsigned long long v) { return rmw<uint64_t>(p, [v](uint64_t o) { return o + v; }); }
unsigned atomic_or(unsigned* p, unsigned v) { return rmw<uint32_t>(p, [v](uint32_t o) { return o | v; }); }
int atomic_cas(int* p, int c, int v) { return int(rmw<uint32_t>(p, [=](uint32_t o) { return o == uint32_t(c) ? uint32_t(v) : o; })); }
void thread_fence() {}
unsigned atomic_max(unsigned* p, unsigned v) { return rmw<uint32_t>(p, [v](uint32_t o) { return std::max(o, v); }); }
unsigned atomic_cas(unsigned* p, unsigned c, unsigned v) { return rmw<uint32_t>(p, [=](uint32_t o) { return o == c ? v : o; }); }

// ---- race detector: our own runtime behind -fsanitize=thread instrumentation ----------------------
#if !defined(BINADE_HOST_RACE)
static void race_access(const void*, size_t, int, void*, int) {}
#else
namespace {
struct Rec { uint32_t blk, bar, clk; uint16_t tid; uint8_t kind, used; const void* pc; };
struct Cell { uint64_t gen; Rec w, r0, r1; };  // one cell per 2 bytes
constexpr size_t kPage = 1024;
std::unordered_map<uintptr_t, std::unique_ptr<Cell[]>> g_pages;
uintptr_t g_tag[256]; Cell* g_ptr[256];
Cell* page(uintptr_t pg) {
    auto i = pg % 256;
    if (g_ptr[i] && g_tag[i] == pg) return g_ptr[i];
    auto& s = g_pages[pg];
    if (!s) s.reset(new Cell[kPage / 2]());
    g_tag[i] = pg; return g_ptr[i] = s.get();
}
std::string sym(const void* pc) {
    if (!pc) return "(warp primitive)";
    Dl_info di; std::string out = "?";
    if (dladdr(pc, &di)) {
        char cmd[512];
        std::snprintf(cmd, sizeof cmd, "addr2line -Cse %s %zx 2>/dev/null", di.dli_fname, size_t(static_cast<const char*>(pc) - 1 - static_cast<char*>(di.dli_fbase)));
        if (FILE* f = popen(cmd, "r")) { char b[256]; if (fgets(b, sizeof b, f)) out = b; pclose(f); }
        while (!out.empty() && out.back() == '\n') out.pop_back();
    }
    return out;
}
}  // namespace
static void race_access(const void* p, size_t n, int kind, void* pc, int tid) {
    Exec& x = *X;
    auto a = static_cast<const char*>(p);
    if (a >= x.stacks && a < x.stacks + (kStack + kGuard) * kMaxThreads) return;
    bool sm = a >= x.smem && a < x.smem + kMaxSmem;
    uint64_t gen = sm ? x.smem_gen : x.launch_gen;
    auto& w = x.warp[size_t(tid / 32)];
    Rec me{x.blk, x.bar_epoch, w.vc[tid & 31][tid & 31], uint16_t(tid), uint8_t(kind), 1, pc};
    auto ordered = [&](const Rec& r) {
        if (!r.used) return true;
        if (r.blk != x.blk) return false;
        if (r.tid == tid) return r.kind != kPending || kind == kWrite || kind == kPending;
        if (r.bar < x.bar_epoch) return r.kind != kPending;
        return r.tid / 32 == tid / 32 && w.vc[tid & 31][r.tid & 31] >= r.clk && r.kind != kPending;
    };
    auto report = [&](const Rec& r, const char* what) {
        char b[256];
        std::snprintf(b, sizeof b, "data race on %s memory (%s, %zu bytes at %s%#zx): thread %d block %u %s vs earlier %s by thread %u block %u; now ", sm ? "shared" : "global", what, n, sm ? "smem+" : "",
                      sm ? size_t(a - x.smem) : size_t(a), tid, x.blk, kind == kRead ? "reads" : "writes", r.kind == kRead ? "read" : r.kind == kPending ? "in-flight cp.async" : "write", r.tid, r.blk);
        std::string m = b + sym(pc) + ", earlier " + sym(r.pc);
        fail_kernel(std::move(m));
    };
    for (size_t k = 0; k < n; k += 2) {
        auto u = reinterpret_cast<uintptr_t>(a) + k;
        Cell& c = page(u / kPage)[u % kPage / 2];
        if (c.gen != gen) { c.gen = gen; c.w.used = c.r0.used = c.r1.used = 0; }
        if (sm && kind == kRead && !c.w.used) fail_kernel("read of uninitialised shared memory at smem+" + std::to_string(a - x.smem) + ", " + sym(pc));
        if (!ordered(c.w) && !(kind == kAtomic && c.w.kind == kAtomic)) report(c.w, kind == kRead ? "RAW" : "WAW");
        if (kind == kRead) {
            if (c.r0.used && c.r0.tid != tid && (!c.r1.used || c.r1.tid == tid || c.r1.tid / 32 == tid / 32)) c.r1 = c.r0;
            c.r0 = me;
        } else {
            if (!ordered(c.r0)) report(c.r0, "WAR");
            if (!ordered(c.r1)) report(c.r1, "WAR");
            c.w = me; c.r0.used = c.r1.used = 0;
        }
    }
}
}  // namespace binade::kernels::host
extern "C" {
#define HOOK(name, n, kind) void name(void* p) { if (binade::kernels::host::X && binade::kernels::host::X->cur >= 0) binade::kernels::host::race_access(p, n, binade::kernels::host::kind, __builtin_return_address(0), binade::kernels::host::X->cur); }
HOOK(__tsan_read1, 1, kRead) HOOK(__tsan_read2, 2, kRead) HOOK(__tsan_read4, 4, kRead) HOOK(__tsan_read8, 8, kRead) HOOK(__tsan_read16, 16, kRead)
HOOK(__tsan_write1, 1, kWrite) HOOK(__tsan_write2, 2, kWrite) HOOK(__tsan_write4, 4, kWrite) HOOK(__tsan_write8, 8, kWrite) HOOK(__tsan_write16, 16, kWrite)
HOOK(__tsan_unaligned_read2, 2, kRead) HOOK(__tsan_unaligned_read4, 4, kRead) HOOK(__tsan_unaligned_read8, 8, kRead) HOOK(__tsan_unaligned_read16, 16, kRead)
HOOK(__tsan_unaligned_write2, 2, kWrite) HOOK(__tsan_unaligned_write4, 4, kWrite) HOOK(__tsan_unaligned_write8, 8, kWrite) HOOK(__tsan_unaligned_write16, 16, kWrite)
HOOK(__tsan_read_write1, 1, kWrite) HOOK(__tsan_read_write2, 2, kWrite) HOOK(__tsan_read_write4, 4, kWrite) HOOK(__tsan_read_write8, 8, kWrite)
void __tsan_read_range(void* p, unsigned long n) { if (binade::kernels::host::X && binade::kernels::host::X->cur >= 0) binade::kernels::host::race_access(p, n, binade::kernels::host::kRead, __builtin_return_address(0), binade::kernels::host::X->cur); }
void __tsan_write_range(void* p, unsigned long n) { if (binade::kernels::host::X && binade::kernels::host::X->cur >= 0) binade::kernels::host::race_access(p, n, binade::kernels::host::kWrite, __builtin_return_address(0), binade::kernels::host::X->cur); }
void* __tsan_memcpy(void* d, const void* s, unsigned long n) { __tsan_read_range(const_cast<void*>(s), n); __tsan_write_range(d, n); return memcpy(d, s, n); }
void* __tsan_memset(void* d, int v, unsigned long n) { __tsan_write_range(d, n); return memset(d, v, n); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
}
namespace binade::kernels::host {
#endif
}  // namespace binade::kernels::host
