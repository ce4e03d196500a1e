"""The settings of this process for commands; invalid ones are bad usage."""

from infrastructure.settings import Settings, SettingsError, load_settings
from interfaces.cli.failures import BadUsage


def checked_settings(**replaced: str) -> Settings:
    """The settings of the environment, some of them replaced by options. Raises BadUsage naming
    every invalid setting."""
    try:
        return load_settings(**replaced)
    except SettingsError as exc:
        raise BadUsage(str(exc)) from exc
