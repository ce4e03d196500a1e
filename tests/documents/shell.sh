# What the blocks of a page run in: one shell for all of them, so that variables and directories stay. `tests/documents/shell.py`
# adds the blocks. Output of each command goes to a file of its own, and at the end the service is stopped and must end well.
set -euo pipefail
DOCUMENT_OUTPUT=$PWD/.output
mkdir -p "$DOCUMENT_OUTPUT"
SERVICE=
READY=.dragoman/serve.json

finish() {
    status=$?
    trap - EXIT
    if [ "$status" != 0 ]; then
        echo "failed at ${AT:-the beginning}, with status $status" >&2
        [ -f "${LAST:-}" ] && tail -n 60 "$LAST" >&2
    fi
    if [ -n "$SERVICE" ]; then
        kill -TERM "$SERVICE" || true
        wait "$SERVICE" && ended=0 || ended=$?
        if [ "$status" = 0 ] && [ "$ended" != 0 ]; then
            echo "the service ended with status $ended" >&2
            status=$ended
        fi
        [ "$status" = 0 ] || tail -n 40 "$DOCUMENT_OUTPUT/service.log" >&2
    fi
    exit "$status"
}
trap finish EXIT

# The reader's own values: ids by the variables named like them, and the port that was free.
own() {
    local text=$1 name
    for name in $(compgen -v | grep -E '^[a-z]+_[0-9]+$' || true); do
        text=${text//"$name"/"${!name}"}
    done
    if [ -f "$READY" ]; then
        local url
        url=$(grep -o '"url": *"[^"]*"' "$READY" | cut -d'"' -f4)
        text=${text//127.0.0.1:8321/"${url#http://}"}
        text=${text//localhost:8321/"${url#http://}"}
    fi
    printf '%s' "$text"
}

# start FILE: run what is in the file in the background, until the service is ready.
start() {
    bash -c "exec $(cat "$1")" </dev/null >"$DOCUMENT_OUTPUT/service.out" 2>"$DOCUMENT_OUTPUT/service.log" &
    SERVICE=$!
    until [ -s "$READY" ]; do
        kill -0 "$SERVICE" || { cat "$DOCUMENT_OUTPUT/service.log" >&2; exit 1; }
        sleep 0.05
    done
}

# written FILE PATH: what is in the file, as PATH.
written() {
    local text
    text=$(own "$(cat "$1")")
    mkdir -p "$(dirname "$2")"
    printf '%s\n' "$text" >"$2"
}

# For `given`: the value at a path of JSON on standard input, as `field data 0 id`.
field() {
    python -c 'import json, sys
value = json.load(sys.stdin)
for key in sys.argv[1:]:
    value = value[int(key) if isinstance(value, list) else key]
print(value if isinstance(value, str) else json.dumps(value))' "$@"
}

# For `given`: an MCP server of that name on PATH, with these tools, which answer with their arguments.
stand_in() {
    mkdir -p bin
    printf '#!/bin/sh\nexec python "%s" %s\n' "$STAND_IN" "${*:2}" >"bin/$1"
    chmod +x "bin/$1"
}

# For `given`: what the reader's model answers to an input: what it says, then each call as a name and its arguments.
answers() {
    python -c 'import json, sys
given, said, *calls = sys.argv[1:]
pairs = [{"name": name, "arguments": arguments} for name, arguments in zip(calls[::2], calls[1::2])]
print(json.dumps({"input": given, "says": said, "calls": pairs}))' "$@" >>.model
}

# For `given`: a request to the service by the key of its first start, or DRAGOMAN_API_KEY: a method, a path below /v1, a body.
api() {
    local key=${DRAGOMAN_API_KEY:-$(cat .dragoman/admin.key)} url
    url=$(own http://127.0.0.1:8321)
    curl --fail-with-body -sS -X "$1" "$url/v1$2" -H "Authorization: Bearer $key" -H 'Content-Type: application/json' ${3:+-d "$3"}
}

# For `given`: a run of an agent, until it ended or waits: the answer's JSON.
run_of() {
    api POST /runs/wait "$(python -c 'import json, sys; print(json.dumps({"agent": sys.argv[1], "input": sys.argv[2]}))' "$1" "$2")"
}
