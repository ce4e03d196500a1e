"""Fields of the limits of users: on the page of settings for each user, on the page of people for
one."""

from domain.json_value import JsonObject
from interfaces.console.form_values import FormValues, text
from interfaces.http.organization.views import UserLimitsView

PREFIX = "user_limits."
_DEFAULT_PER_S = 60.0


def limit_fields(view: UserLimitsView) -> dict[str, str]:
    rate = view["rate_limit"]
    return {
        f"{PREFIX}calls": "" if rate is None else text(rate["calls"]),
        f"{PREFIX}per_s": "" if rate is None else text(rate["per_s"]),
        f"{PREFIX}max_active_runs": text(view["max_active_runs"]),
    }


def limits_body(form: FormValues) -> JsonObject:
    """The API's body. Requests without a time are those of a minute."""
    calls, per_s = form.whole(f"{PREFIX}calls"), form.number(f"{PREFIX}per_s")
    if calls is None and per_s is not None:
        form.note(f"{PREFIX}calls", "is needed with a time")
    rate: JsonObject = {"calls": calls, "per_s": _DEFAULT_PER_S if per_s is None else per_s}
    return {
        "rate_limit": None if calls is None else rate,
        "max_active_runs": form.whole(f"{PREFIX}max_active_runs"),
    }


def limit_field(path: str) -> str:
    """The field of a path in the body."""
    return (
        f"{PREFIX}{path.rpartition('.')[2]}"
        if path.endswith((".calls", ".per_s", ".max_active_runs"))
        else f"{PREFIX}calls"
    )


def shown_limits(view: UserLimitsView) -> str:
    """The limits in words; empty without any."""
    rate, most = view["rate_limit"], view["max_active_runs"]
    said = []
    if rate is not None:
        said.append(f"{rate['calls']} requests in {text(rate['per_s'])} s")
    if most is not None:
        said.append(f"{most} active runs")
    return ", ".join(said)
