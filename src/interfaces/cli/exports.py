"""Files that commands write what the service streams into."""

from collections.abc import AsyncGenerator
from pathlib import Path

from interfaces.cli.failures import BadUsage


async def written(lines: AsyncGenerator[str, None], output: Path) -> int:
    """Write the lines to a file, completely or not at all; returns their number. Raises
    BadUsage."""
    unfinished = output.with_name(f"{output.name}.part")
    count = 0
    try:
        with unfinished.open("w", encoding="utf-8") as file:
            async for line in lines:
                file.write(line + "\n")
                count += 1
        unfinished.replace(output)
    except OSError as exc:
        raise BadUsage(f"Cannot write {output}: {exc.strerror or 'the file cannot be written'}.") from exc
    finally:
        unfinished.unlink(missing_ok=True)
    return count
