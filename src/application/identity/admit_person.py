"""AdmitPerson: the user of a person whose identity provider has vouched for them."""

import logging
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from application.identity.ports import ClaimedGroups, Claims, GroupNames, UserAccess
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ErrorKind, ServiceError
from domain.identity.identity_provider import Admission, IdentityProvider
from domain.identity.provisioning import GROUPS_CLAIM
from domain.identity.user import Profile, User, UserStatus
from domain.ids import AuditEventId, UserId
from domain.json_value import JsonValue

logger = logging.getLogger(__name__)

_ACCESS_STORED_EVERY = timedelta(hours=1)
_MAX_TEXT = 320
_MAX_SUBJECT = 255
"""OpenID Connect Core 1.0, section 2."""
_ENDED = "Your access to this organization has ended."


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitPersonCommand:
    """`claims` are verified. With `signs_in` a person began a session, which is recorded."""

    provider: IdentityProvider
    claims: Claims = field(repr=False)
    signs_in: bool = False


class AdmitPerson:
    """Rules:
    - The first rule of the identity provider that matches gives organization and role. Without one
      the person is refused.
    - A person who is new to the organization gets a user, audited as `user.created`.
    - The claim `scim_groups` has the names of the person's groups that the directory manages,
      whatever the token says.
    - A deactivated or removed user is refused, and so is a person who is that in the organization
      of the identity provider, where the directory manages people.
    - A role that an admin chose stays.
    - A sign-in stores what the identity provider says, and is audited as `user.signed_in`, with the
      role before if it has changed. A request with a token stores nothing that the token says: an
      old token gives no session its former role back.
    - The first access of a person is stored, by a sign-in or a token, and then when a token is
      first used here, at most about once an hour. A user whom the directory made another person's
      meanwhile is refused. A later access that cannot be stored is admitted.
    - At a sign-in, claims make the person a member of groups of the organization (`GroupClaim`),
      and end what they no longer say. The entry names the groups.

    Raises: ServiceError sign_in_refused (UNAUTHENTICATED).
    """

    def __init__(
        self,
        *,
        user_access: UserAccess,
        group_names: GroupNames,
        claimed_groups: ClaimedGroups,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._users = user_access
        self._groups = group_names
        self._claimed = claimed_groups
        self._clock = clock
        self._ids = ids

    async def execute(self, command: AdmitPersonCommand) -> User:
        provider, profile = command.provider, _profile(command.provider, command.claims)
        groups = await self._groups.names_of(provider.id, profile.subject)
        claims: Claims = {**command.claims, GROUPS_CLAIM: [*groups]}
        admission = provider.admission(claims)
        if admission is None:
            raise refused("No rule of the identity provider admits you.")
        if admission.organization_id != provider.organization_id:
            _require_active(await self._users.find(provider.organization_id, profile.issuer, profile.subject))
        now = self._clock.now()
        found = await self._users.find(admission.organization_id, profile.issuer, profile.subject)
        if found is None:
            new = self._new(provider, profile, admission, now)
            found = await self._users.add(new, self._entry(new, AuditAction.USER_CREATED, now))
        _require_active(found)
        found = await self._accessed(found, now)
        seen = found.seen(profile, provider.id, admission.role, admission.custom_role)
        if command.signs_in:
            seen = replace(seen, last_sign_in_at=now)
            before = _role(found)
            was: dict[str, JsonValue] = {} if _role(seen) == before else {"previous_role": before}
            was |= await self._claim(seen, provider, claims)
            await self._users.saw(seen, self._entry(seen, AuditAction.USER_SIGNED_IN, now, **was))
        return seen

    async def _accessed(self, user: User, now: datetime) -> User:
        last = user.last_sign_in_at
        if last is not None and now - last < _ACCESS_STORED_EVERY:
            return user
        try:
            is_stored = await self._users.accessed(user, now)
        except ServiceError as error:
            if last is None or error.kind is not ErrorKind.UNAVAILABLE:
                raise
            logger.warning("the last access of a person was not stored (%s)", error.code)
            return user
        if not is_stored:
            raise refused(_ENDED)
        return replace(user, last_sign_in_at=now)

    async def _claim(self, user: User, provider: IdentityProvider, claims: Claims) -> dict[str, JsonValue]:
        """Details of the entry: the groups in which the person is by their claims."""
        known = await self._claimed.with_claims(user.organization_id)
        groups = [group for group in known if group.claimed_by(provider.id, claims)]
        if known:
            await self._claimed.set_claimed(user, [group.id for group in groups])
        return {"groups": [group.name for group in groups]} if groups else {}

    def _new(self, provider: IdentityProvider, profile: Profile, admission: Admission, now: datetime) -> User:
        return User(
            id=UserId(self._ids.new("usr")),
            organization_id=admission.organization_id,
            provider_id=provider.id,
            issuer=profile.issuer,
            subject=profile.subject,
            email=profile.email,
            name=profile.name,
            role=admission.role,
            custom_role=admission.custom_role,
            created_at=now,
            last_sign_in_at=now,
        )

    def _entry(self, user: User, action: AuditAction, now: datetime, **more: JsonValue) -> AuditEvent:
        return AuditEvent(
            id=AuditEventId(self._ids.new("aud")),
            organization_id=user.organization_id,
            action=action,
            actor=user.id,
            resource=user.id,
            at=now,
            details={"role": _role(user), "identity_provider": user.provider_id, **more},
        )


def _role(user: User) -> str:
    return user.custom_role or user.role.value


def _require_active(user: User | None) -> None:
    if user is not None and user.status is not UserStatus.ACTIVE:
        raise refused(_ENDED)


def refused(detail: str) -> ServiceError:
    return ServiceError("sign_in_refused", ErrorKind.UNAUTHENTICATED, detail)


def _profile(provider: IdentityProvider, claims: Claims) -> Profile:
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= _MAX_SUBJECT or "\0" in subject:
        raise refused("The identity provider did not say who you are.")
    return Profile(
        issuer=provider.issuer, subject=subject, email=_text(claims.get("email")), name=_text(claims.get("name"))
    )


def _text(value: object) -> str | None:
    """Shown to admins: one printable line, cut."""
    if not isinstance(value, str):
        return None
    return "".join(character for character in value if character.isprintable())[:_MAX_TEXT] or None
