"""Providers of schedules."""

from dependency_injector import containers, providers

from application.schedules.create_schedule import CreateSchedule
from application.schedules.delete_schedule import DeleteSchedule
from application.schedules.fire_schedules import FireSchedules
from application.schedules.ports import CronTimes
from application.schedules.queries import GetSchedule, ListSchedules
from application.schedules.schedule_checks import ScheduleChecks
from application.schedules.update_schedule import UpdateSchedule
from infrastructure.containers.models import Models
from infrastructure.containers.platform import Platform
from infrastructure.containers.runs import Runs
from infrastructure.containers.storage import Storage
from infrastructure.containers.webhooks import Webhooks
from infrastructure.persistence.schedules.store import SqlScheduleStore
from infrastructure.runtime.cron import CronsimTimes


class Schedules(containers.DeclarativeContainer):
    cron_times: providers.Provider[CronTimes] = providers.Singleton(CronsimTimes)
    schedules: providers.Provider[SqlScheduleStore] = providers.Singleton(
        SqlScheduleStore, database=Storage.database, wakeups=Platform.wakeups, box=Platform.secret_box
    )
    fire_schedules: providers.Provider[FireSchedules] = providers.Singleton(
        FireSchedules,
        due=schedules,
        schedules=schedules,
        start_run=Runs.start_run,
        times=cron_times,
        wakeups=Platform.wakeups,
        clock=Platform.clock,
    )
    schedule_checks: providers.Provider[ScheduleChecks] = providers.Singleton(
        ScheduleChecks,
        agents=Storage.agents,
        threads=Storage.threads,
        organizations=Storage.organizations,
        models=Models.routed_models,
        prices=Models.prices,
        webhooks=Webhooks.webhook_check,
        times=cron_times,
    )
    create_schedule: providers.Provider[CreateSchedule] = providers.Singleton(
        CreateSchedule,
        schedules=schedules,
        checks=schedule_checks,
        times=cron_times,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    update_schedule: providers.Provider[UpdateSchedule] = providers.Singleton(
        UpdateSchedule,
        schedules=schedules,
        checks=schedule_checks,
        times=cron_times,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    get_schedule: providers.Provider[GetSchedule] = providers.Singleton(GetSchedule, schedules=schedules)
    list_schedules: providers.Provider[ListSchedules] = providers.Singleton(ListSchedules, schedules=schedules)
    delete_schedule: providers.Provider[DeleteSchedule] = providers.Singleton(
        DeleteSchedule, schedules=schedules, clock=Platform.clock, ids=Platform.ids
    )
