"""Attempts on files: of the service, of other servers, of the user, of the system."""

import errno
import os
import sqlite3
import subprocess

from tests.integration.confinement.attempt import World, append, attempt, call, read, require_real

# The service's files.


@attempt
def read_the_first_key(world: World) -> object:
    return read(f"{world['home']}/admin.key")


@attempt
def read_the_encryption_key(world: World) -> object:
    return read(f"{world['home']}/secret.key")


@attempt
def read_the_database(world: World) -> object:
    return read(f"{world['home']}/dragoman.db")


@attempt
def query_the_database(world: World) -> object:
    try:
        with sqlite3.connect(f"file:{world['home']}/dragoman.db?mode=rw", uri=True) as database:
            return database.execute("select 1 from sqlite_master").fetchall()
    except sqlite3.Error as exc:
        raise PermissionError(errno.EACCES, str(exc)) from exc


@attempt
def write_the_database(world: World) -> None:
    require_real(f"{world['home']}/dragoman.db")
    append(f"{world['home']}/dragoman.db")


@attempt
def truncate_the_database(world: World) -> None:
    os.truncate(f"{world['home']}/dragoman.db", 0)


@attempt
def create_a_file_in_home(world: World) -> None:
    require_real(f"{world['home']}/dragoman.db")
    append(f"{world['home']}/planted")


@attempt
def delete_a_key(world: World) -> None:
    os.unlink(f"{world['home']}/secret.key")


@attempt
def rename_a_key(world: World) -> None:
    os.rename(f"{world['home']}/secret.key", f"{world['home']}/gone")


@attempt
def move_a_key_to_its_own_directory(world: World) -> None:
    os.rename(f"{world['home']}/secret.key", f"{world['own']}/secret.key")


@attempt
def list_home(world: World) -> object:
    require_real(f"{world['home']}/dragoman.db")
    return os.listdir(world["home"])


@attempt
def link_a_key_into_its_own_directory(world: World) -> object:
    os.link(f"{world['home']}/admin.key", f"{world['own']}/linked.key")
    return read(f"{world['own']}/linked.key")


@attempt
def read_a_key_through_a_symbolic_link(world: World) -> object:
    pointer = f"{world['own']}/pointer-{os.getpid()}"
    os.symlink(f"{world['home']}/admin.key", pointer)
    try:
        return read(pointer)
    finally:
        os.unlink(pointer)


@attempt
def read_a_key_through_proc_root(world: World) -> object:
    return read(f"/proc/self/root{world['home']}/admin.key")


@attempt
def read_a_key_relative_to_its_working_directory(world: World) -> object:
    return read(os.path.relpath(f"{world['home']}/admin.key"))


@attempt
def reopen_a_key_from_a_path_descriptor(world: World) -> object:
    descriptor = os.open(f"{world['home']}/admin.key", os.O_PATH)
    return read(f"/proc/self/fd/{descriptor}")


@attempt
def make_a_key_readable_for_others(world: World) -> None:
    os.chmod(f"{world['home']}/admin.key", 0o644)


@attempt
def make_home_unusable(world: World) -> None:
    require_real(f"{world['home']}/dragoman.db")
    os.chmod(world["home"], 0o000)


@attempt
def change_the_owner_of_a_key(world: World) -> None:
    os.chown(f"{world['home']}/admin.key", os.getuid(), os.getgid())


@attempt
def execute_a_program_in_home(world: World) -> object:
    return subprocess.run([f"{world['home']}/program"], check=True)


@attempt
def mount_over_home(world: World) -> None:
    call("mount", b"none", world["home"].encode(), b"tmpfs", 0, None)


@attempt
def leave_by_chroot(world: World) -> None:
    os.chroot(world["own"])


# Files of other servers, of the user and of the system.


@attempt
def read_a_file_of_another_server(world: World) -> object:
    return read(f"{world['other']}/data.json")


@attempt
def write_a_file_of_another_server(world: World) -> None:
    append(f"{world['other']}/data.json")


@attempt
def plant_code_in_another_server(world: World) -> None:
    append(f"{world['other']}/sitecustomize.py")


@attempt
def list_the_files_of_another_server(world: World) -> object:
    return os.listdir(world["other"])


@attempt
def read_the_users_private_key(world: World) -> object:
    return read(f"{world['user_home']}/.ssh/id_ed25519")


@attempt
def write_the_users_profile(world: World) -> None:
    append(f"{world['user_home']}/.profile")


@attempt
def write_a_program_of_the_system(_: World) -> None:
    append("/usr/local/bin/hostile")


@attempt
def write_the_password_file(_: World) -> None:
    append("/etc/passwd")


@attempt
def read_the_shadow_file(_: World) -> object:
    return read("/etc/shadow")


@attempt
def plant_a_cron_job(_: World) -> None:
    append("/etc/cron.d/hostile")


@attempt
def write_to_the_shared_temporary_directory(world: World) -> None:
    require_real(world["socket"])
    append(world["temporary"])


@attempt
def create_a_device(world: World) -> object:
    os.mknod(f"{world['own']}/disk", 0o60600, os.makedev(8, 0))
    return read(f"{world['own']}/disk")


@attempt
def open_the_memory_of_the_machine(_: World) -> object:
    return os.open("/dev/mem", os.O_RDWR)


@attempt
def open_the_kernels_log(_: World) -> object:
    return os.open("/dev/kmsg", os.O_RDWR)


@attempt
def write_a_kernel_parameter(_: World) -> None:
    append("/proc/sys/kernel/hostname")


@attempt
def pull_a_trigger_of_the_kernel(_: World) -> object:
    return os.open("/proc/sysrq-trigger", os.O_WRONLY)


@attempt
def create_a_cgroup(_: World) -> None:
    os.mkdir("/sys/fs/cgroup/hostile")
