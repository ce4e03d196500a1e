"""Lists in OpenAI's form."""

from domain.json_value import JsonObject


def list_view(items: list[JsonObject], *, limit: int, order: str, after: str | None) -> JsonObject:
    """A page of items that are given oldest first; `after` is the id of the last item of the page before."""
    ordered = items if order == "asc" else items[::-1]
    ids = [item["id"] for item in ordered]
    start = ids.index(after) + 1 if after in ids else 0
    page = ordered[start : start + limit]
    return {
        "object": "list",
        "data": [*page],
        "first_id": page[0]["id"] if page else "",
        "last_id": page[-1]["id"] if page else "",
        "has_more": start + limit < len(ordered),
    }
