"""What waiting nodes wait for besides answers of people: runs of agents, and accounts. Used by the
worker."""

from application.workflows.node_execution import AccountWaits, AgentExecutor
from domain.workflows.execution import NodeRun
from domain.workflows.run import WorkflowRun


class NodeWaits:
    """For nodes that may continue (`NodeRun.may_continue`)."""

    def __init__(self, agents: AgentExecutor, accounts: AccountWaits) -> None:
        self._agents = agents
        self._accounts = accounts

    async def is_over(self, run: WorkflowRun, node: NodeRun) -> bool:
        """Whether the agent's run waits for something else now, or the account is connected."""
        if (run_id := node.waits_for_run) is not None:
            return await self._agents.has_moved_on(run.organization_id, run_id, since_seq=node.run_seq or 0)
        account = node.waits_for_account
        return account is not None and await self._accounts.is_connected(run, account)

    async def over(self, run: WorkflowRun, node: NodeRun) -> None:
        """Wait until `is_over`."""
        if (run_id := node.waits_for_run) is not None:
            await self._agents.moved_on(run.organization_id, run_id, since_seq=node.run_seq or 0)
        elif (account := node.waits_for_account) is not None:
            await self._accounts.connected_in(run, account)

    async def began(self, run: WorkflowRun) -> None:
        """The run is suspended: continue it if an account was connected in the meantime."""
        if any(node.waits_for_account is not None for node in run.waiting_nodes):
            await self._accounts.began_to_wait(run)
