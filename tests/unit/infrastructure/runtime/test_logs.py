"""Log lines as they are written: fields, ids of the run, no secrets."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator

import pytest
from mcp.client import session

from infrastructure.runtime.logs import claim_loggers, configure_logging, log_context
from infrastructure.secrets.redaction import Redactor

SECRET = "hunter22-hunter22"


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def stream() -> io.StringIO:
    stream = io.StringIO()
    configure_logging(level="info", form="json", redactor=Redactor([SECRET]), stream=stream)
    return stream


def written(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.requirement("G2")
def test_a_line_is_json_with_time_level_logger_message_and_extra_fields(stream: io.StringIO) -> None:
    logging.getLogger("application.tools").info("tool %s done", "git_log", extra={"tool": "git_log", "duration_ms": 12})

    (line,) = written(stream)
    assert str(line.pop("timestamp")).endswith("Z")
    assert line == {
        "event": "tool git_log done",
        "level": "info",
        "logger": "application.tools",
        "tool": "git_log",
        "duration_ms": 12,
    }


@pytest.mark.requirement("G2")
async def test_every_line_inside_a_run_carries_its_ids_and_no_line_outside_does(stream: io.StringIO) -> None:
    async def run(run_id: str) -> None:
        with log_context(run_id=run_id, thread_id=f"of {run_id}", organization_id="org_1"):
            await asyncio.sleep(0)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(call(run_id))

    async def call(run_id: str) -> None:
        await asyncio.sleep(0)
        logging.getLogger("application").info(run_id)

    await asyncio.gather(run("run_1"), run("run_2"))
    logging.getLogger("application").info("after")

    *inside, outside = written(stream)
    assert {line["event"] for line in inside} == {"run_1", "run_2"}
    assert all(line["run_id"] == line["event"] for line in inside)
    assert all(line["thread_id"] == f"of {line['event']}" for line in inside)
    assert all(line["organization_id"] == "org_1" for line in inside)
    assert outside.keys().isdisjoint({"run_id", "thread_id", "organization_id"})


@pytest.mark.requirement("G2")
async def test_a_task_that_outlives_its_context_carries_no_id_of_it_and_the_innermost_context_alone_applies(
    stream: io.StringIO,
) -> None:
    context_has_ended = asyncio.Event()

    async def outliving() -> None:
        await context_has_ended.wait()
        logging.getLogger("application").info("later")

    with log_context(request_id="req_1"):
        task = asyncio.create_task(outliving())
        with log_context(run_id="run_1"):
            logging.getLogger("application").info("of the run")
        logging.getLogger("application").info("of the request")
    context_has_ended.set()
    await task

    ids = {line["event"]: (line.get("request_id"), line.get("run_id")) for line in written(stream)}
    assert ids == {"of the run": (None, "run_1"), "of the request": ("req_1", None), "later": (None, None)}


async def test_fields_cannot_replace_what_every_line_has_and_win_over_ids_of_the_context(stream: io.StringIO) -> None:
    with log_context(run_id="of the context"):
        logging.getLogger("application").info(
            "said", extra={"level": "none", "event": "other", "run_id": "of the line"}
        )
    (line,) = written(stream)
    assert (line["event"], line["level"], line["run_id"]) == ("said", "info", "of the line")


@pytest.mark.parametrize(
    "value",
    [pytest.param("half \ud83d of it", id="surrogate"), pytest.param({(1, 2): "x"}, id="key"), float("nan"), 10**40],
)
def test_a_value_that_json_has_no_form_for_costs_no_line(stream: io.StringIO, value: object) -> None:
    logging.getLogger("application").warning("odd", extra={"value": value, "tool": "x"})
    logging.getLogger("application").warning("next")
    odd, following = written(stream)
    assert (odd["event"], odd["tool"], following["event"]) == ("odd", "x", "next")


@pytest.mark.requirement("G2", "B12")
@pytest.mark.parametrize("form", ["json", "console"])
def test_planted_secrets_appear_nowhere(form: str) -> None:
    stream = io.StringIO()
    configure_logging(
        level="info", form="json" if form == "json" else "console", redactor=Redactor([SECRET]), stream=stream
    )
    log = logging.getLogger("application")

    log.info("connecting with %s", SECRET, extra={"url": f"https://h/?k={SECRET}", "headers": {"X": [SECRET]}})
    log.info("named", extra={"api_key": "unregistered-1", "server": {"Authorization": "unregistered-2"}})
    with log_context(session=SECRET):
        try:
            raise ValueError(f"rejected {SECRET}")
        except ValueError:
            log.exception("failed")

    text = stream.getvalue()
    assert SECRET not in text
    assert "unregistered" not in text
    assert "ValueError: rejected [redacted]" in text


def test_the_level_is_obeyed_and_noisy_libraries_are_silenced(stream: io.StringIO) -> None:
    logging.getLogger("application").debug("too fine")
    logging.getLogger("httpx").info("HTTP Request: GET …")
    logging.getLogger("opentelemetry.sdk").error("Failed to export", extra={"code": 1})
    logging.getLogger("httpx").warning("worth knowing")

    assert [line["event"] for line in written(stream)] == ["worth knowing"]


@pytest.mark.requirement("S3")
def test_notifications_of_servers_that_are_not_valid_are_not_logged(stream: io.StringIO) -> None:
    session.logger.warning("Failed to validate notification", exc_info=ValueError("of a server"))
    assert written(stream) == []


def test_configuring_again_replaces_the_former_output(stream: io.StringIO) -> None:
    later = io.StringIO()
    configure_logging(level="warning", form="console", redactor=Redactor(), stream=later)

    logging.getLogger("application").warning("once", extra={"tool": "x"})

    assert stream.getvalue() == ""
    assert later.getvalue().count("once") == 1
    assert "tool=x" in later.getvalue()


def test_a_library_that_sets_up_logging_when_imported_is_claimed_for_the_log(stream: io.StringIO) -> None:
    own = io.StringIO()
    library = logging.getLogger("langfuse")
    library.addHandler(logging.StreamHandler(own))
    library.setLevel(logging.DEBUG)

    claim_loggers("langfuse")
    library.warning("chatter")
    library.error("broken")

    assert own.getvalue() == ""
    assert [line["event"] for line in written(stream)] == ["broken"]
