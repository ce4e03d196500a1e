"""The settings of this process, for a command: a wrong one is bad usage."""

from infrastructure.settings import Settings, SettingsError, load_settings
from interfaces.cli.failures import BadUsage


def checked_settings() -> Settings:
    """The settings. Raises BadUsage naming every wrong one."""
    try:
        return load_settings()
    except SettingsError as exc:
        raise BadUsage(str(exc)) from exc
