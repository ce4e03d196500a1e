"""Providers of approvals, for runs and gateway sessions."""

from dependency_injector import containers, providers

from application.approvals.decide_approval import DecideApproval
from application.approvals.fire_timers import FireTimers
from application.approvals.ports import TimerStore
from application.approvals.queries import GetApproval, ListApprovals, WhyNotApprovable, WhyNotEditable
from application.runs.decide_run_approval import DecideRunApproval
from infrastructure.containers.gateway import Gateway
from infrastructure.containers.identity import Identity
from infrastructure.containers.platform import Platform
from infrastructure.containers.runs import Runs
from infrastructure.containers.storage import Storage
from infrastructure.containers.wiring import Singletons
from infrastructure.persistence.approvals.store import SqlTimerStore

singleton = Singletons(Platform, Storage)


class Approvals(containers.DeclarativeContainer):
    decide_run_approval = singleton(DecideRunApproval, resume_run=Runs.resume_run, queue=Storage.run_queue)
    timers: providers.Provider[TimerStore] = singleton(SqlTimerStore)
    fire_timers = singleton(
        FireTimers, timers=timers, of_run=decide_run_approval, of_session=Gateway.decide_gateway_approval
    )
    decide_approval = singleton(DecideApproval, of_run=decide_run_approval, of_session=Gateway.decide_gateway_approval)
    list_approvals = singleton(ListApprovals)
    get_approval = singleton(GetApproval)
    why_not_approvable = singleton(WhyNotApprovable, deciders=Identity.deciders)
    why_not_editable = singleton(WhyNotEditable)
