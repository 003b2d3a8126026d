// The sanitizers that the test was compiled with.
#pragma once

namespace binade::testing {

#if defined(__SANITIZE_THREAD__)
#define BINADE_TEST_TSAN 1
#elif defined(__SANITIZE_ADDRESS__)
#define BINADE_TEST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BINADE_TEST_TSAN 1
#elif __has_feature(address_sanitizer)
#define BINADE_TEST_ASAN 1
#endif
#endif

// It ends a forked child that starts threads.
#ifdef BINADE_TEST_TSAN
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif
// It holds freed memory back, so that the process grows.
#ifdef BINADE_TEST_ASAN
constexpr bool kAddressSanitizer = true;
#else
constexpr bool kAddressSanitizer = false;
#endif

}  // namespace binade::testing
