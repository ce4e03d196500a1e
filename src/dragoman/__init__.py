"""The installed distribution. Importing it puts its four packages first on the path, before others
of their names."""

import sys
from pathlib import Path

_HERE = Path(__file__).parent
PACKAGES = _HERE / "packages" if (_HERE / "packages").is_dir() else _HERE.parent
"""The directory of `domain`, `application`, `infrastructure` and `interfaces`: in an installation
inside this package, in a checkout beside it."""

sys.path[:] = [str(PACKAGES), *(entry for entry in sys.path if entry != str(PACKAGES))]
