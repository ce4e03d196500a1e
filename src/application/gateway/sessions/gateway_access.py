"""GatewayAccess: finds the session of a bearer token, with a cache."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from application.agents.agent_lookup import existing_agent
from application.agents.ports import AgentStore
from application.gateway.ports import GatewaySessionStore
from application.gateway.sessions.open_session import own_thread
from application.gateway.sessions.session_ends import SessionEnds
from application.identity.authenticate import Authenticate, AuthenticateCommand
from application.identity.caller_teams import CallerTeams
from application.identity.key_limits import KeyLimits
from application.system.lru import LruCache
from application.system.ports import Clock
from domain.errors import ErrorKind, ServiceError, invalid
from domain.gateway.session import SESSION_TOKEN_PREFIX, GatewaySession, ToolNames
from domain.identity.api_key import Principal, hash_token, person_of
from domain.identity.impersonation import who_acts
from domain.identity.permission import Permission
from domain.ids import ApiKeyId, GatewaySessionId, OrganizationId, ThreadId, derived_id
from domain.teams import Teams, sees

CAPACITY = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    session: GatewaySession
    read_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _KnownTeams:
    teams: Teams
    read_at: float


class GatewayAccess:
    """Rules:
    - Unknown, expired and revoked tokens get the same answer.
    - An API key with the role runner opens the tools of a named agent, as a session for the UTC
      day.
    - The token of an OAuth client is for one agent, and refused at the URL of another one. Unless
      `has_own_grants`, another authorization server takes the place of this one, and each such
      token is refused.
    - A session token has the service's rate limit; all sessions of a key together have the key's
      limit, those of a user the user's.
    - Sessions are cached for `fresh_s`; while this process gets change notifications
      (`is_notified`), until the next change. Sessions that end with a run are cached while `ends`
      watches the run.
    - `on_forget` is called when a session has ended here.
    - Tokens of identity providers must be for `audience`, if there is one.
    - The token of a session is refused once who opened it does not see what the team of its agent
      owns, or that of its thread. Teams are cached as sessions are.
    """

    def __init__(
        self,
        *,
        sessions: GatewaySessionStore,
        agents: AgentStore,
        authenticate: Authenticate,
        caller_teams: CallerTeams,
        limits: KeyLimits,
        clock: Clock,
        is_notified: Callable[[], bool],
        ends: SessionEnds,
        fresh_s: float = 0.5,
        on_forget: Callable[[], None] = lambda: None,
        audience: Callable[[], str | None] = lambda: None,
        has_own_grants: bool = True,
    ) -> None:
        self._sessions = sessions
        self._on_forget = on_forget
        self._audience = audience
        self._has_own_grants = has_own_grants
        self._agents = agents
        self._authenticate = authenticate
        self._caller_teams = caller_teams
        self._teams: LruCache[tuple[OrganizationId, ApiKeyId], _KnownTeams] = LruCache(CAPACITY)
        self._limits = limits
        self._clock = clock
        self._is_notified = is_notified
        self._ends = ends
        self._fresh_s = fresh_s
        self._hashes: dict[GatewaySessionId, str] = {}
        self._known: LruCache[str, _Known] = LruCache(
            CAPACITY, on_drop=lambda known: self._hashes.pop(known.session.id, None)
        )
        self._served: dict[GatewaySessionId, GatewaySession] = {}
        self._generation = 0

    async def open(self, token: str, *, agent: str | None = None) -> GatewaySession:
        """The open session; `agent` is for API keys and for tokens of OAuth clients. Raises
        UNAUTHENTICATED `token_invalid`, FORBIDDEN, INVALID `agent_missing`, NOT_FOUND
        `agent_not_found`, LIMIT `rate_limited`."""
        if not token.startswith(SESSION_TOKEN_PREFIX):
            principal = await self._authenticate.execute(AuthenticateCommand(token=token, audience=self._audience()))
            return await self.of_principal(principal, agent)
        token_hash = hash_token(token)
        session = self._fresh(token_hash)
        if session is None:
            generation = self._generation
            session = await self._sessions.by_token_hash(token_hash)
            if session is None:
                raise _unauthenticated()
            self._keep(token_hash, session, generation)
        if not session.takes_token(self._clock.now()) or not (self._has_own_grants or session.client_id is None):
            raise _unauthenticated()
        await self._require_agent(session, agent if session.client_id is not None else None)
        await self._count(session)
        return session

    async def _count(self, session: GatewaySession) -> None:
        user_id, itself = person_of(who_acts(session.created_by)), ApiKeyId(session.id)
        if user_id is not None:
            await self._limits.take_of_user(session.organization_id, user_id, session_id=itself)
        elif session.key_of is not None:
            await self._limits.take_of_users_key(
                session.organization_id, session.key_of, session.created_by, session.rate_limit, session_id=itself
            )
        elif (counted := self._limits.take_of_session(itself, session.created_by, session.rate_limit)) is not None:
            await counted

    def forget(self, session_id: GatewaySessionId) -> None:
        """Invalidate an ended session, including reads under way."""
        self._invalidate(session_id)
        self._on_forget()

    def forget_organization(self, organization_id: OrganizationId | None) -> None:
        """Invalidate the organization's sessions after a change elsewhere, including reads under
        way. None: of all organizations."""
        self._generation += 1
        for whose in self._teams:
            if organization_id in (None, whose[0]):
                self._teams.pop(whose)
        for token_hash, known in self._known.items():
            if organization_id is None or known.session.organization_id == organization_id:
                self._known.pop(token_hash)
                self._hashes.pop(known.session.id, None)

    def served(self) -> tuple[GatewaySession, ...]:
        """Sessions that were opened here and not `dropped` since, ended or not."""
        return tuple(self._served.values())

    def knows(self, session_id: GatewaySessionId) -> bool:
        """Whether the session is cached."""
        return session_id in self._hashes

    def dropped(self, session_id: GatewaySessionId) -> None:
        """Discard an ended session."""
        self.forget(session_id)
        self._ends.leave(session_id)
        self._served.pop(session_id, None)

    def _fresh(self, token_hash: str) -> GatewaySession | None:
        known = self._known.get(token_hash)
        if known is None:
            return None
        session = known.session
        lasts = self._is_notified() and (
            not session.ends_with_another or self._ends.hears_since(session.id, known.read_at)
        )
        if not lasts and self._clock.monotonic() - known.read_at >= self._fresh_s:
            return None
        return session

    def _invalidate(self, session_id: GatewaySessionId) -> None:
        self._generation += 1
        token_hash = self._hashes.pop(session_id, None)
        if token_hash is not None:
            self._known.pop(token_hash)

    def _keep(self, token_hash: str, session: GatewaySession, generation: int) -> None:
        self._served[session.id] = session
        if session.ends_with_another and session.revoked_at is None:
            self._ends.follow(session, self._invalidate)
        if generation != self._generation:
            return
        self._hashes[session.id] = token_hash
        self._known.put(token_hash, _Known(session=session, read_at=self._clock.monotonic()))

    async def _require_agent(self, session: GatewaySession, name: str | None) -> None:
        """The agent is the named one, and who opened the session sees what its team and that of the
        thread own."""
        found = await self._agents.get(session.organization_id, session.agent_id)
        if name not in (None, session.agent_id) and (found is None or found.config.name != name):
            raise _unauthenticated()
        owners = {session.team, None if found is None else found.team} - {None}
        if owners:
            teams = await self._teams_of(session)
            if not all(sees(teams, owner) for owner in owners):
                raise _unauthenticated()

    async def _teams_of(self, session: GatewaySession) -> Teams:
        whose, now = (session.organization_id, session.created_by), self._clock.monotonic()
        known = self._teams.get(whose)
        if known is not None and (self._is_notified() or now - known.read_at < self._fresh_s):
            return known.teams
        generation = self._generation
        teams = await self._caller_teams.of_actor(session.organization_id, session.created_by)
        if generation == self._generation:
            self._teams.put(whose, _KnownTeams(teams=teams, read_at=now))
        return teams

    async def of_principal(self, principal: Principal, name: str | None) -> GatewaySession:
        """The session of this day with the named agent, of one who is authenticated. Raises as
        `open`."""
        principal.require(Permission.RUNS_START)
        if not name:
            raise invalid("agent_missing", "An API key opens an agent's tools: name it as `?agent=NAME`.")
        agent = await existing_agent(self._agents, principal, name)
        now = self._clock.now()
        # An agent that moves to another team has another thread.
        owner = () if agent.team is None else (agent.team,)
        session_id = GatewaySessionId(derived_id("gws", principal.key_id, agent.id, now.date().isoformat(), *owner))
        session = self._fresh(session_id)
        if session is None:
            generation = self._generation
            wanted = GatewaySession(
                id=session_id,
                organization_id=principal.organization_id,
                agent_id=agent.id,
                thread_id=ThreadId(derived_id("thr", session_id)),
                names=ToolNames.NAMESPACED,
                created_by=principal.key_id,
                created_at=now,
                expires_at=_end_of_day(now),
            )
            session = await self._sessions.keep(wanted, thread=own_thread(wanted, agent.team))
            self._keep(session_id, session, generation)
        if not session.is_open(now) or not principal.sees(session.team):
            raise _unauthenticated()
        return session


def _end_of_day(now: datetime) -> datetime:
    return datetime.combine(now.date() + timedelta(days=1), time(), tzinfo=UTC)


def _unauthenticated() -> ServiceError:
    return ServiceError("token_invalid", ErrorKind.UNAUTHENTICATED, "The token is unknown, expired or revoked.")
