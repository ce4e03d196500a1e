"""Removes the bytes of images and files from the input and the messages of a rolled-back run."""

from sqlalchemy import Connection, bindparam, select, update

from domain.ids import RunId
from domain.threads.attachments import without_attachments
from infrastructure.persistence.tables import message, run_request
from infrastructure.persistence.threads.message_rows import content_json, content_of

_messages = select(message.c.id, message.c.content).where(message.c.run_id == bindparam("of_run"))
_set_content = update(message).where(message.c.id == bindparam("of_message")).values(content=bindparam("new_content"))
_input = select(run_request.c.input).where(run_request.c.run_id == bindparam("of_run"))
_set_input = update(run_request).where(run_request.c.run_id == bindparam("of_run")).values(input=bindparam("new_input"))


def remove_attachments(connection: Connection, run_id: RunId) -> None:
    """Rewrites rows with attachments only."""
    for row in connection.execute(_messages, {"of_run": run_id}).all():
        content = content_of(row.content)
        kept = without_attachments(content)
        if kept != content:
            connection.execute(_set_content, {"of_message": row.id, "new_content": content_json(kept)})
    stored = content_of(connection.execute(_input, {"of_run": run_id}).scalar_one())
    kept = without_attachments(stored)
    if kept != stored:
        connection.execute(_set_input, {"of_run": run_id, "new_input": content_json(kept)})
