"""Who acts: what rules about people look at."""

from dataclasses import dataclass

from domain.ids import ApiKeyId, UserId


@dataclass(frozen=True, slots=True, kw_only=True)
class ActingPerson:
    """A user or an API key.

    - `person_id` is the user, or the one who created the key; None for a key that no user created.
    - `groups` are names of the groups that a user is in now. A key is in none.
    """

    id: ApiKeyId
    person_id: UserId | None = None
    groups: frozenset[str] = frozenset()

    def is_same_person(self, other: "ActingPerson") -> bool:
        """Whether one person acts in both cases. A key that a user created acts for that user."""
        return (self.person_id or self.id) == (other.person_id or other.id)
