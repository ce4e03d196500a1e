"""A browser in words, by what it says of itself."""

_NAMES = (("Edg", "Edge"), ("OPR", "Opera"), ("Firefox", "Firefox"), ("Chrome", "Chrome"), ("Version", "Safari"))
"""The first of these whose token is there: later browsers name the earlier ones, too."""
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


def browser_in_words(user_agent: str | None) -> str:
    """Name, version and system, such as “Firefox 143 on Linux”; else the text as it is."""
    if not user_agent:
        return "–"
    tokens = dict(token.split("/", 1) for token in user_agent.split() if "/" in token)
    found = ((name, tokens[token]) for token, name in _NAMES if token in tokens)
    name, version = next(found, ("", ""))
    if "HeadlessChrome" in tokens:
        name, version = "Chrome", tokens["HeadlessChrome"]
    system = next((words for part, words in _SYSTEMS if part in user_agent), "")
    if not name or not system:
        return user_agent
    return f"{name} {version.partition('.')[0]} on {system}"
