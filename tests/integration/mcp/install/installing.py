"""A service that installs one server with a stand-in for npm, to be killed meanwhile: HOME PATH as
arguments."""

import asyncio
import os
import sys
from pathlib import Path

from tests.integration.mcp.install.workshop import Workshop, npm

if __name__ == "__main__":
    home, search_path = sys.argv[1:]
    workshop = Workshop(Path(home), environment={"PATH": search_path, "HOME": os.environ["HOME"]})
    asyncio.run(workshop.installer.install(npm("some-server"), workshop.progress.append))
