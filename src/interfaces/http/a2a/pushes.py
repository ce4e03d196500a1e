"""Push notification configs of tasks."""

from application.a2a.delete_push_config import DeletePushConfig, DeletePushConfigCommand
from application.a2a.put_push_config import PutPushConfig, PutPushConfigCommand
from application.a2a.queries import ListPushConfigs
from domain.a2a.push import PushTarget
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.ids import RunId
from domain.json_value import JsonObject
from interfaces.http.a2a.schemas import CreatePushBody, PushBody, TaskPushBody, TaskPushesBody


class A2aPushes:
    """Rules:
    - A config is shown with its address and its scheme, never with its token or its credentials.
    - A config that does not exist is not found, but deleting it is no error.
    """

    def __init__(
        self,
        *,
        put_push_config: PutPushConfig,
        delete_push_config: DeletePushConfig,
        list_push_configs: ListPushConfigs,
    ) -> None:
        self._put = put_push_config
        self._delete = delete_push_config
        self._list = list_push_configs

    async def require_usable(self, principal: Principal, body: PushBody, task_id: str | None) -> None:
        """Raises as PutPushConfig for a config that could not be stored, with the task if there is
        one already."""
        await self._put.require_usable(principal, _target(body))
        if task_id:
            await self._put.require_room(_command(principal, RunId(task_id), body))

    async def put(self, principal: Principal, run_id: RunId, body: PushBody) -> JsonObject:
        """Raises as PutPushConfig."""
        return (await self._put.execute(_command(principal, run_id, body))).as_json()

    async def create(self, principal: Principal, body: CreatePushBody) -> JsonObject:
        """Raises as PutPushConfig."""
        return await self.put(principal, RunId(body.task_id), body)

    async def get(self, principal: Principal, body: TaskPushBody) -> JsonObject:
        """Raises NOT_FOUND, FORBIDDEN."""
        for config in await self._list.execute(principal, RunId(body.task_id)):
            if config.id == body.id:
                return config.as_json()
        raise not_found("push config", body.id)

    async def list(self, principal: Principal, body: TaskPushesBody) -> JsonObject:
        """All of them: a task has few. Raises NOT_FOUND, FORBIDDEN."""
        configs = await self._list.execute(principal, RunId(body.task_id))
        return {"configs": [config.as_json() for config in configs], "nextPageToken": ""}

    async def delete(self, principal: Principal, body: TaskPushBody) -> JsonObject:
        """Raises NOT_FOUND for the task, FORBIDDEN."""
        command = DeletePushConfigCommand(principal=principal, run_id=RunId(body.task_id), config_id=body.id)
        await self._delete.execute(command)
        return {}


def _command(principal: Principal, run_id: RunId, body: PushBody) -> PutPushConfigCommand:
    return PutPushConfigCommand(principal=principal, run_id=run_id, target=_target(body), config_id=body.id or "")


def _target(body: PushBody) -> PushTarget:
    given = body.authentication
    return PushTarget(
        url=body.url,
        token=body.token or "",
        scheme="" if given is None else given.scheme,
        credentials="" if given is None else given.credentials or "",
    )
