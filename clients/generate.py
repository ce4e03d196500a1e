"""`python -m clients.generate`: what the clients do not have by hand, from the OpenAPI document and
from each other."""

import json
import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from docsite.api_reference import openapi_document

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ROOT / "clients" / "python" / "src" / "dragoman_client"
TYPESCRIPT = ROOT / "clients" / "typescript"
CODEGEN = ROOT / ".venv-docs" / "bin" / "datamodel-codegen"
OPENAPI_TYPESCRIPT = TYPESCRIPT / "node_modules" / ".bin" / "openapi-typescript"
RUFF = ROOT / ".venv" / "bin" / "ruff"
_OPTIONS = (
    "--input-file-type=openapi",
    "--output-model-type=typing.TypedDict",
    "--target-python-version=3.11",
    "--no-use-closed-typed-dict",
    "--use-standard-collections",
    "--use-union-operator",
    "--use-schema-description",
    "--use-field-description",
    "--use-single-line-docstring",
    "--enum-field-as-literal=all",
    "--formatters=builtin",
    "--custom-file-header=# The shapes of the HTTP API, written by `make clients` from the OpenAPI document.",
)
_SYNCHRONOUS = (
    (
        r"\A\"\"\"The(.*?)asynchronous(.*?)\. `.*?\"\"\"",
        r'"""The\1synchronous\2, written by `make clients` from the asynchronous one: change that."""',
    ),
    (r"\bdragoman_client\.aio", "dragoman_client.sync"),
    (r"^import anyio\n", "import time\n"),
    (r"\banyio\.current_time", "time.monotonic"),
    (r"\banyio\.sleep", "time.sleep"),
    (r"\banyio\.Path", "Path"),
    (r"\baclosing\b", "closing"),
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\b__a(enter|exit)__\b", r"__\1__"),
    (r"\ba(close|read|iter_lines)\b", r"\1"),
    (r"\bAsyncGenerator\[(\w+), None\]", r"Generator[\1, None, None]"),
    (r"\bAsync(?=[A-Z])", ""),
)


def generated() -> dict[Path, str]:
    """The generated files and their texts."""
    with TemporaryDirectory() as folder:
        document, models, types = (Path(folder) / name for name in ("openapi.json", "models.py", "schema.ts"))
        # Verbs are written by hand, so operations are left out.
        document.write_text(json.dumps({**openapi_document(), "paths": {}}), encoding="utf-8")
        _run(CODEGEN, f"--input={document}", f"--output={models}", *_OPTIONS)
        _run(OPENAPI_TYPESCRIPT, document, "--default-non-nullable=false", f"--output={types}")
        return {
            PYTHON / "models.py": models.read_text(encoding="utf-8"),
            **synchronous_client(),
            TYPESCRIPT / "src" / "schema.ts": types.read_text(encoding="utf-8"),
        }


def synchronous_client() -> dict[Path, str]:
    """The files of the synchronous client."""
    return {
        path.with_name(path.name.replace("aio", "sync")): synchronous(path.read_text(encoding="utf-8"))
        for path in PYTHON.glob("aio*.py")
    }


def synchronous(asynchronous: str) -> str:
    """The module without its `async` and `await`."""
    for pattern, replacement in _SYNCHRONOUS:
        asynchronous = re.sub(pattern, replacement, asynchronous, flags=re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        [RUFF, "format", "--stdin-filename=sync.py", "-"],
        input=asynchronous,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    for path, text in generated().items():
        path.write_text(text, encoding="utf-8")
