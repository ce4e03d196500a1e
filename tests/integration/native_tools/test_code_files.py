"""The files of code_execution: the sources of the thread go in, what the code writes comes out as
sources."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from application.sources.source_content import parts_of
from application.sources.store_source import StoreSource, StoreSourceCommand
from application.tools.ports import NativeToolContext, NativeToolError
from domain.audit.event import AuditAction
from domain.ids import OrganizationId, SourceId, ThreadId, ToolCallId
from domain.json_value import JsonObject, JsonValue
from domain.sources.source import Source, SourceKind
from infrastructure.native_tools.code_execution import CodeExecutionTool, CodeLimits
from tests.builders import ORG, OTHER_ORG, RUN, THREAD, a_thread, a_thread_id, an_audit_event, numbered
from tests.doubles.plain_text_extractor import PlainTextExtractor
from tests.doubles.sources import InMemorySourceIntake, InMemorySourceStore
from tests.doubles.state import InMemoryState, StoredThread
from tests.doubles.surroundings import StepClock

LIMITS = CodeLimits(
    timeout_s=30.0, max_read_bytes=10_000, max_written_bytes=1024 * 1024, max_files=3, max_host_calls=2_000
)
CSV = "name,amount\nAda,3\nGrace,4\n"


class Sandbox:
    """A thread with sources, and code that runs in it."""

    def __init__(self, limits: CodeLimits = LIMITS) -> None:
        self.state = InMemoryState()
        self.state.threads[THREAD] = StoredThread(thread=a_thread())
        self.sources = InMemorySourceStore(self.state)
        clock = StepClock()
        self.store = StoreSource(
            intake=InMemorySourceIntake(self.state), sources=self.sources, extractor=PlainTextExtractor(), clock=clock
        )
        self.tool = CodeExecutionTool(
            sources=self.sources, store_source=self.store, clock=clock, limits=limits, max_processes=1
        )
        self._count = 0

    async def add(
        self,
        name: str,
        content: str | bytes,
        *,
        thread_id: ThreadId = THREAD,
        organization_id: OrganizationId = ORG,
    ) -> Source:
        self._count += 1
        number = self._count

        async def once() -> AsyncIterator[bytes]:
            yield content.encode() if isinstance(content, str) else content

        return await self.store.execute(
            StoreSourceCommand(
                source_id=SourceId(numbered("src", number)),
                organization_id=organization_id,
                thread_id=thread_id,
                name=name,
                content=once(),
                audit=lambda source: an_audit_event(number, action=AuditAction.SOURCE_ADDED, resource=source.id),
            )
        )

    async def run(self, code: str, *, call: str = "call_1") -> JsonObject:
        context = NativeToolContext(
            organization_id=ORG, thread_id=THREAD, run_id=RUN, tool_call_id=ToolCallId(call), timeout_s=30.0
        )
        async with asyncio.timeout(60):
            value = (await self.tool.run({"code": code}, context)).value
        assert isinstance(value, dict)
        return value

    async def result(self, code: str) -> JsonValue:
        return (await self.run(code))["result"]

    async def failure(self, code: str) -> NativeToolError:
        with pytest.raises(NativeToolError) as caught:
            await self.run(code)
        return caught.value

    async def names(self) -> list[str]:
        return sorted(source.name for source in await self.sources.of_thread(ORG, THREAD))

    async def bytes_of(self, source: Source) -> bytes:
        return b"".join([part async for part in parts_of(self.sources, source)])


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    sandbox = Sandbox()
    yield sandbox
    await sandbox.tool.close()


@pytest.mark.requirement("D1")
@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("open('data.csv').read()", CSV),
        ("import csv\nsum(int(row['amount']) for row in csv.DictReader(open('data.csv')))", 7),
        ("with open('data.csv') as f:\n    lines = [line.strip() for line in f]\nlines[1]", "Ada,3"),
        ("f = open('data.csv')\n[f.readline(), f.read(3)]", ["name,amount\n", "Ada"]),
        ("open('raw.bin', 'rb').read()[1]", 255),
        ("from pathlib import Path\nPath('data.csv').read_text()", CSV),
        ("from pathlib import Path\nPath('raw.bin').read_bytes()[0]", 0),
        ("import os\nsorted(os.listdir())", ["data.csv", "raw.bin"]),
        ("from pathlib import Path\nsorted(p.name for p in Path('.').iterdir())", ["data.csv", "raw.bin"]),
        ("import os\n[os.path.exists('data.csv'), os.path.exists('none'), os.getcwd()]", [True, False, "/sources"]),
        ("from pathlib import Path\n[Path('data.csv').stat().st_size, Path('data.csv').is_file()]", [len(CSV), True]),
    ],
)
async def test_code_reads_the_sources_of_its_thread(sandbox: Sandbox, code: str, result: JsonValue) -> None:
    await sandbox.add("data.csv", CSV)
    await sandbox.add("raw.bin", b"\x00\xff")

    assert await sandbox.result(code) == result


@pytest.mark.requirement("D1")
async def test_what_code_writes_becomes_a_source_of_the_thread(sandbox: Sandbox) -> None:
    code = "f = open('sum.csv', 'w')\nf.write('total\\n')\nf.write('7\\n')\nf.close()\nopen('b.bin', 'wb').write(b'\\x00\\x01')"
    value = await sandbox.run(code)

    table, binary = sorted(await sandbox.sources.of_thread(ORG, THREAD), key=lambda source: source.size, reverse=True)
    assert value["files"] == [
        {"source_id": table.id, "file": "sum.csv", "size": 8},
        {"source_id": binary.id, "file": "b.bin", "size": 2},
    ]
    assert (table.kind, table.run_id, table.chunks) == (SourceKind.CSV, RUN, 1)
    assert binary.kind is SourceKind.FILE
    assert await sandbox.bytes_of(table) == b"total\n7\n"
    assert await sandbox.bytes_of(binary) == b"\x00\x01"
    assert table.id.startswith("src_")


@pytest.mark.requirement("D1")
async def test_a_later_call_reads_what_an_earlier_one_wrote(sandbox: Sandbox) -> None:
    await sandbox.run("from pathlib import Path\nPath('notes.txt').write_text('kept')")
    assert await sandbox.result("open('notes.txt').read()") == "kept"


@pytest.mark.requirement("D1", "E3")
async def test_a_repeated_call_makes_no_second_file(sandbox: Sandbox) -> None:
    for _ in range(2):
        await sandbox.run("open('a.txt', 'w').write('same')", call="call_1")
    assert await sandbox.names() == ["a.txt"]
    await sandbox.run("open('a.txt', 'w').write('other')", call="call_2")
    assert await sandbox.names() == ["a.txt", "a.txt"]
    assert await sandbox.result("open('a.txt').read()") == "other"


@pytest.mark.requirement("C5", "D1")
async def test_a_file_that_code_wrote_is_audited_with_its_run(sandbox: Sandbox) -> None:
    value = await sandbox.run("open('a.txt', 'w').write('x')")
    (entry,) = sandbox.state.audit.values()
    assert (entry.action, entry.actor, entry.run_id) == (AuditAction.SOURCE_ADDED, "system", RUN)
    assert value["files"] == [{"source_id": entry.resource, "file": "a.txt", "size": 1}]
    assert entry.details["name"] == "a.txt"


async def test_a_source_is_not_changed_by_code_that_adds_to_it(sandbox: Sandbox) -> None:
    original = await sandbox.add("log.txt", "one\n")
    await sandbox.run("open('log.txt', 'a').write('two\\n')")
    newest, oldest = await sandbox.sources.of_thread(ORG, THREAD)
    assert oldest == original
    assert await sandbox.bytes_of(oldest) == b"one\n"
    assert await sandbox.bytes_of(newest) == b"one\ntwo\n"


async def test_code_that_fails_leaves_no_files(sandbox: Sandbox) -> None:
    assert (await sandbox.failure("open('a.txt', 'w').write('x')\n1 / 0")).code == "code_error"
    assert await sandbox.names() == []


async def test_code_may_take_back_what_it_wrote_but_no_source(sandbox: Sandbox) -> None:
    await sandbox.add("data.csv", CSV)
    removing = "from pathlib import Path\nPath('a.txt').write_text('x')\nPath('a.txt').unlink()"
    assert "files" not in await sandbox.run(removing)
    error = await sandbox.failure("from pathlib import Path\nPath('data.csv').unlink()")
    assert "PermissionError" in error.message
    assert await sandbox.names() == ["data.csv"]


@pytest.mark.requirement("C6", "D1")
async def test_files_of_other_threads_and_organizations_are_not_there(sandbox: Sandbox) -> None:
    other = a_thread(a_thread_id(2))
    foreign = a_thread(a_thread_id(3), organization_id=OTHER_ORG)
    for thread in (other, foreign):
        sandbox.state.threads[thread.id] = StoredThread(thread=thread)
    await sandbox.add("other.txt", "secret", thread_id=other.id)
    source = await sandbox.add("foreign.txt", "secret", thread_id=foreign.id, organization_id=OTHER_ORG)

    assert await sandbox.result("import os\nos.listdir()") == []
    for path in ("other.txt", "foreign.txt", source.id, f"/sources/../{foreign.id}/foreign.txt"):
        assert "FileNotFoundError" in (await sandbox.failure(f"open({path!r}).read()")).message


@pytest.mark.requirement("D1")
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("open('/etc/passwd').read()", "FileNotFoundError"),
        ("open('../data.csv').read()", "FileNotFoundError"),
        ("open('/sources/../../data.csv').read()", "FileNotFoundError"),
        ("open('sub/a.txt', 'w')", "PermissionError"),
        ("open('/var/tmp/a.txt', 'w')", "PermissionError"),
        ("from pathlib import Path\nPath('sub').mkdir()", "PermissionError"),
        ("from pathlib import Path\nPath('data.csv').rename('/var/tmp/x')", "PermissionError"),
        ("import os\nos.listdir('/etc')", "FileNotFoundError"),
        ("open('.').read()", "IsADirectoryError"),
        ("open('a\\nb', 'w')", "OSError"),
        ("open('x' * 300, 'w')", "OSError"),
        ("open('raw.bin').read()", "ValueError"),
        ("open('data.csv', 'x')", "Error"),
    ],
)
async def test_nothing_else_can_be_read_or_written(sandbox: Sandbox, code: str, said: str) -> None:
    await sandbox.add("data.csv", CSV)
    await sandbox.add("raw.bin", b"\xff\xfe\xfd\x00")

    error = await sandbox.failure(code)

    assert error.code == "code_error"
    assert said in error.message
    assert await sandbox.names() == ["data.csv", "raw.bin"]


@pytest.mark.requirement("D1")
@pytest.mark.parametrize(
    "code",
    [
        "for n in range(10): open(f'{n}.txt', 'w').write('x')",
        "f = open('a.txt', 'w')\nwhile True: f.write('x' * 100_000)",
        "open('a.txt', 'w').write('x' * 2_000_000)",
        "open('a.txt', 'a').write('x' * 1_000_000)\nopen('b.txt', 'a').write('x' * 1_000_000)",
        "open('big.txt').read()",
        "while True: open('data.csv').read()",
        "while True: open('a.txt', 'w').write('x')",
    ],
)
async def test_files_are_no_way_around_the_caps(sandbox: Sandbox, code: str) -> None:
    await sandbox.add("data.csv", CSV)
    await sandbox.add("big.txt", "x" * 20_000)

    error = await sandbox.failure(code)

    assert error.code in {"code_error", "code_memory_exceeded", "code_timeout"}
    assert await sandbox.names() == ["big.txt", "data.csv"]


async def test_a_file_is_read_from_storage_once_and_the_caps_count_it_once(sandbox: Sandbox) -> None:
    await sandbox.add("data.txt", "x" * 6_000)
    assert await sandbox.result("sum(len(open('data.txt').read()) for _ in range(10))") == 60_000


async def test_a_thread_that_takes_no_more_files_is_reported(sandbox: Sandbox) -> None:
    del sandbox.state.threads[THREAD]
    error = await sandbox.failure("open('a.txt', 'w').write('x')")
    assert error.code == "code_files_not_kept"
    assert "'a.txt'" in error.message
