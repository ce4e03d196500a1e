"""A command that is no MCP server in one of several ways: `exits`, `rubbish`, `silent`. Its second
argument marks the process."""

import sys


def main(kind: str) -> int:
    match kind:
        case "exits":
            sys.stderr.write("I cannot find my configuration\n")
            return 3
        case "rubbish":
            for _ in range(2000):
                sys.stdout.write("Welcome! This is not JSON-RPC.\n{broken\n[]\n42\n")
            sys.stdout.flush()
        case _:
            pass
    sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
