"""Providers of approvals, for runs and gateway sessions."""

from dependency_injector import containers, providers

from application.approvals.decide_approval import DecideApproval
from application.approvals.fire_timers import FireTimers
from application.approvals.ports import TimerStore
from application.approvals.queries import ListApprovals
from application.runs.decide_run_approval import DecideRunApproval
from infrastructure.containers.gateway import Gateway
from infrastructure.containers.platform import Platform
from infrastructure.containers.runs import Runs
from infrastructure.containers.storage import Storage
from infrastructure.persistence.approvals.store import SqlTimerStore


class Approvals(containers.DeclarativeContainer):
    decide_run_approval: providers.Provider[DecideRunApproval] = providers.Singleton(
        DecideRunApproval,
        resume_run=Runs.resume_run,
        runs=Storage.runs,
        queue=Storage.run_queue,
        clock=Platform.clock,
    )
    timers: providers.Provider[TimerStore] = providers.Singleton(SqlTimerStore, database=Storage.database)
    fire_timers: providers.Provider[FireTimers] = providers.Singleton(
        FireTimers,
        timers=timers,
        approvals=Storage.approvals,
        of_run=decide_run_approval,
        of_session=Gateway.decide_gateway_approval,
        wakeups=Platform.wakeups,
        clock=Platform.clock,
    )
    decide_approval: providers.Provider[DecideApproval] = providers.Singleton(
        DecideApproval,
        approvals=Storage.approvals,
        of_run=decide_run_approval,
        of_session=Gateway.decide_gateway_approval,
    )
    list_approvals: providers.Provider[ListApprovals] = providers.Singleton(ListApprovals, approvals=Storage.approvals)
