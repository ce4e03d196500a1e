"""Describes a server's environment as JSON. A stand-alone script, run by that environment's Python:

    python -I describe_environment.py NAME-OR-FILE OUTPUT

The first argument is the name of the distribution, or the file it was installed from (PEP 610,
direct_url.json).
"""

import json
import sys
import sysconfig
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path


def installed_from(found: Distribution, file: Path) -> bool:
    origin = found.read_text("direct_url.json")
    return origin is not None and json.loads(origin).get("url") == file.as_uri()


def commands_of(found: Distribution, directory: Path) -> list[str]:
    """The distribution's executables in the environment's script directory."""
    places = [Path(str(found.locate_file(file))).resolve() for file in found.files or ()]
    return sorted(place.name for place in places if place.parent == directory)


def main(argument: str) -> dict[str, object]:
    """Name, version and commands of the distribution, and the versions of all distributions."""
    every = list(distributions())
    if argument.startswith("/"):
        (asked,) = (found for found in every if installed_from(found, Path(argument)))
    else:
        asked = distribution(argument)
    return {
        "name": asked.metadata["Name"],
        "version": asked.version,
        "commands": commands_of(asked, Path(sysconfig.get_path("scripts")).resolve()),
        "packages": {found.metadata["Name"]: found.version for found in every},
    }


if __name__ == "__main__":
    Path(sys.argv[2]).unlink(missing_ok=True)  # a pipe in its place would not be read
    Path(sys.argv[2]).write_text(json.dumps(main(sys.argv[1])), encoding="utf-8")
