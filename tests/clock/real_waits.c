/* Waits, past libfaketime 0.9.10 (Debian 12), preloaded before it. The clock that it moves runs at its normal speed, so a wait for
   some time needs no change. libfaketime changes two things all the same:
   - It moves absolute times of the monotonic clock, which is not moved: time.sleep of Python 3.11 fails with EINVAL
     (https://github.com/wolfcw/libfaketime/issues/426).
   - Signal handlers that run during a wait see the real clock: no timeout of PostgreSQL ever fires. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>

static int (*real_epoll_wait)(int, struct epoll_event *, int, int);
static int (*real_epoll_pwait)(int, struct epoll_event *, int, int, const sigset_t *);
static int (*real_poll)(struct pollfd *, nfds_t, int);
static int (*real_ppoll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
static int (*real_select)(int, fd_set *, fd_set *, fd_set *, struct timeval *);
static int (*real_pselect)(int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *);
static int (*real_nanosleep)(const struct timespec *, struct timespec *);
static int (*real_clock_nanosleep)(clockid_t, int, const struct timespec *, struct timespec *);
static int (*moved_clock_nanosleep)(clockid_t, int, const struct timespec *, struct timespec *);

/* Early, as waits are called where nothing may be looked up: in signal handlers, and between fork and exec. */
__attribute__((constructor)) static void look_up(void) {
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    real_epoll_wait = dlsym(libc, "epoll_wait");
    real_epoll_pwait = dlsym(libc, "epoll_pwait");
    real_poll = dlsym(libc, "poll");
    real_ppoll = dlsym(libc, "ppoll");
    real_select = dlsym(libc, "select");
    real_pselect = dlsym(libc, "pselect");
    real_nanosleep = dlsym(libc, "nanosleep");
    real_clock_nanosleep = dlsym(libc, "clock_nanosleep");
    moved_clock_nanosleep = dlsym(RTLD_NEXT, "clock_nanosleep");
}

/* Constructors of other libraries come before this one's, and may wait. */
#define LOOKED_UP(function) (function ? function : (look_up(), function))

int epoll_wait(int epoll, struct epoll_event *events, int size, int milliseconds) {
    return LOOKED_UP(real_epoll_wait)(epoll, events, size, milliseconds);
}

int epoll_pwait(int epoll, struct epoll_event *events, int size, int milliseconds, const sigset_t *mask) {
    return LOOKED_UP(real_epoll_pwait)(epoll, events, size, milliseconds, mask);
}

int poll(struct pollfd *files, nfds_t size, int milliseconds) {
    return LOOKED_UP(real_poll)(files, size, milliseconds);
}

int ppoll(struct pollfd *files, nfds_t size, const struct timespec *time, const sigset_t *mask) {
    return LOOKED_UP(real_ppoll)(files, size, time, mask);
}

int select(int size, fd_set *reads, fd_set *writes, fd_set *others, struct timeval *time) {
    return LOOKED_UP(real_select)(size, reads, writes, others, time);
}

int pselect(int size, fd_set *reads, fd_set *writes, fd_set *others, const struct timespec *time, const sigset_t *mask) {
    return LOOKED_UP(real_pselect)(size, reads, writes, others, time, mask);
}

int nanosleep(const struct timespec *time, struct timespec *left) {
    return LOOKED_UP(real_nanosleep)(time, left);
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left) {
    if (clock == CLOCK_REALTIME && (flags & TIMER_ABSTIME))
        return LOOKED_UP(moved_clock_nanosleep)(clock, flags, time, left);
    return LOOKED_UP(real_clock_nanosleep)(clock, flags, time, left);
}
