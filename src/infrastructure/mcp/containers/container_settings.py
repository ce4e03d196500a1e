"""The settings of a container in the engine's API: what it runs and what it may use. No I/O."""

import posixpath

from domain.json_value import JsonObject, JsonValue
from infrastructure.mcp.containers.engine import DATA_PATH, ContainerSpec, EngineError, EngineFault

_TEMPORARY_PATH = "/tmp"  # noqa: S108 (the container's)
_TEMPORARY = "rw,nosuid,nodev,size=268435456,mode=1777"
_VOLUME: JsonObject = {"SizeBytes": 64 * 1024**2, "Mode": 0o1777}
_MAX_VOLUMES = 16
_NANO = 1_000_000_000
_FILES = 4096


def create_body(spec: ContainerSpec, *, user: str, image: JsonObject) -> JsonObject:
    """The body of `POST /containers/create`; `image` is the engine's description of the image.
    Raises EngineError.

    - Nothing is read-write but the data directory and bounded file systems in memory: `/tmp`, and
      one for each volume of the image, where the engine would otherwise create an unbounded one.
    - The image's health check is not executed.
    - Outputs are not stored by the engine: they carry what calls say.
    """
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
        "Healthcheck": {"Test": ["NONE"]},
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
            "Mounts": [
                {"Type": "bind", "Source": str(spec.data), "Target": DATA_PATH, "ReadOnly": False},
                *_volumes(image),
            ],
            "Tmpfs": {_TEMPORARY_PATH: _TEMPORARY},
            "LogConfig": {"Type": "none", "Config": {}},
            "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
            "AutoRemove": False,
        },
    }
    if spec.args:
        body["Cmd"] = list(spec.args)
    return body


def _volumes(image: JsonObject) -> list[JsonValue]:
    config = image.get("Config")
    named = config.get("Volumes") if isinstance(config, dict) else None
    paths = {posixpath.normpath(path) for path in named} if isinstance(named, dict) else set()
    if len(paths) > _MAX_VOLUMES:
        raise EngineError(EngineFault.REFUSED, f"The image has more than {_MAX_VOLUMES} volumes.")
    free = sorted(paths - {DATA_PATH, _TEMPORARY_PATH})
    return [{"Type": "tmpfs", "Target": path, "TmpfsOptions": _VOLUME} for path in free]
