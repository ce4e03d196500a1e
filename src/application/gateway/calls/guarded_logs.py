"""What servers log about a call, on its way to a client of the gateway: watched for canary tokens."""

from application.mcp.log_messages import LogTap, McpLogMessage
from application.policy.canary_guard import CanaryGuard
from domain.ids import ToolCallId


def guarded_logs(guard: CanaryGuard, call_id: ToolCallId, tap: LogTap) -> LogTap:
    """Tells the client, until something holds a canary token; then the call's session is ended with the call."""

    async def told(message: McpLogMessage) -> None:
        guard.progress(call_id, message.as_json())
        if guard.seen(call_id) is None:
            await tap.tell(message)

    return LogTap(level=tap.level, tell=told)
