/* Sleeps on the monotonic clock, past libfaketime 0.9.10 (Debian 12): it moves their absolute times although that clock is not
   moved, and time.sleep of Python 3.11 then fails with EINVAL (https://github.com/wolfcw/libfaketime/issues/426). */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <time.h>

typedef int sleeping(clockid_t, int, const struct timespec *, struct timespec *);

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left) {
    void *from = clock == CLOCK_MONOTONIC ? dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD) : RTLD_NEXT;
    sleeping *next = from ? (sleeping *)dlsym(from, "clock_nanosleep") : NULL;
    return next ? next(clock, flags, until, left) : ENOSYS;
}
