"""The client for Python: ask an agent, follow its run, approve its calls. See the page about
clients."""

from dragoman_client import Dragoman

with Dragoman() as dragoman:  # DRAGOMAN_URL, DRAGOMAN_API_KEY
    dragoman.servers.apply(slug="time", kind="custom", command="python", args=["-m", "mcp_server_time"])
    dragoman.agents.apply(
        name="clock",
        model="scripted:time.yaml",  # or "openai:gpt-5-mini", where the service has a key
        mcp_servers=["time"],
        tool_policies={"mcp__time__*": {"decision": "require_approval"}},
    )
    run = dragoman.runs.start(agent="clock", input="What time is it in Lisbon?")
    for event in run.stream():
        if event["type"] == "message.delta":
            print(event["text"], end="")
        elif event["type"] == "run.requires_action":
            for call in run.pending:
                print(f"\n? {call.name} {call.params}")
                call.approve(reason="It only looks at a clock.")
    print(f"\n{run.id} {run.status}")
