"""Log messages of a server about one call, searched for canary tokens before the client gets
them."""

from application.mcp.log_messages import LogTap, McpLogMessage
from application.policy.canary_guard import CanaryGuard
from domain.ids import ToolCallId


def guarded_logs(guard: CanaryGuard, call_id: ToolCallId, tap: LogTap) -> LogTap:
    """Passes messages on until one holds a canary token; the session then ends with the call."""

    async def told(message: McpLogMessage) -> None:
        guard.progress(call_id, message.as_json())
        if guard.seen(call_id) is None:
            await tap.tell(message)

    return LogTap(level=tap.level, tell=told)
