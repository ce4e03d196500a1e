"""The settings of a container in the engine's API: what it runs and what it may use. No I/O."""

from domain.json_value import JsonObject
from infrastructure.mcp.containers.engine import DATA_PATH, ContainerSpec

_TEMPORARY = "rw,nosuid,nodev,size=268435456,mode=1777"
_NANO = 1_000_000_000
_FILES = 4096


def create_body(spec: ContainerSpec, *, user: str) -> JsonObject:
    """The body of `POST /containers/create`. Nothing is read-write but the data directory and a file system in memory.
    Outputs are not stored by the engine: they carry what calls say."""
    body: JsonObject = {
        "Image": spec.image,
        "Env": [f"{name}={value}" for name, value in spec.environment.items()],
        "User": user,
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "OpenStdin": True,
        "StdinOnce": True,
        "Tty": False,
        "Labels": dict(spec.labels),
        "HostConfig": {
            "NetworkMode": "default" if spec.network else "none",
            "ReadonlyRootfs": True,
            "Privileged": False,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "IpcMode": "private",
            "Memory": spec.memory,
            "MemorySwap": spec.memory,
            "PidsLimit": spec.processes or None,
            "NanoCpus": int(spec.cpus * _NANO),
            "Ulimits": [
                {"Name": "core", "Soft": 0, "Hard": 0},
                {"Name": "nofile", "Soft": _FILES, "Hard": _FILES},
            ],
            "Mounts": [{"Type": "bind", "Source": str(spec.data), "Target": DATA_PATH, "ReadOnly": False}],
            "Tmpfs": {"/tmp": _TEMPORARY},  # noqa: S108 (the container's)
            "LogConfig": {"Type": "none", "Config": {}},
            "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
            "AutoRemove": False,
        },
    }
    if spec.args:
        body["Cmd"] = list(spec.args)
    return body
