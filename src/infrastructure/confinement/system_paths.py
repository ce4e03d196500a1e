"""Paths of the operating system that a confined process may use. Below the launcher; standard
library only.

Of `/etc` only what libraries read, because configuration of services, with their secrets, is beside
it."""

READABLE = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"),
    *("/etc/alternatives", "/etc/ca-certificates", "/etc/crypto-policies", "/etc/fonts", "/etc/pki", "/etc/ssl"),
    *(
        "/etc/ld.so.cache",
        "/etc/ld.so.conf",
        "/etc/ld.so.conf.d",
        "/etc/ld.so.preload",
        "/etc/magic",
        "/etc/mime.types",
    ),
    *("/etc/gai.conf", "/etc/host.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/protocols", "/etc/resolv.conf"),
    *("/etc/services", "/etc/group", "/etc/passwd", "/etc/localtime", "/etc/timezone", "/etc/locale.alias"),
    *("/etc/debian_version", "/etc/lsb-release", "/etc/os-release", "/etc/gitconfig", "/etc/inputrc"),
    *("/sys/devices/system/cpu", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage"),
)
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
SHARED_MEMORY, TEMPORARY = "/dev/shm", "/tmp"  # noqa: S108  # places, in which nothing is created
IN_MEMORY_BYTES = 512 * 1024**2
"""Size of each file system in memory, which no limit of a process counts."""
PROC_FILES = tuple(
    f"/proc/{name}"
    for name in (
        "cpuinfo",
        "filesystems",
        "loadavg",
        "meminfo",
        "stat",
        "sys",
        "uptime",
        "version",
        "self",
        "thread-self",
    )
)
"""Readable where /proc shows all processes. Children of a server then have no /proc/self."""
