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
from infrastructure.containers.wiring import Singletons
from infrastructure.persistence.schedules.store import SqlScheduleStore
from infrastructure.runtime.cron import CronsimTimes

singleton = Singletons(Platform, Storage)


class Schedules(containers.DeclarativeContainer):
    cron_times: providers.Provider[CronTimes] = singleton(CronsimTimes)
    schedules = singleton(SqlScheduleStore, box=Platform.secret_box)
    fire_schedules = singleton(
        FireSchedules, due=schedules, schedules=schedules, start_run=Runs.start_run, times=cron_times
    )
    schedule_checks = singleton(
        ScheduleChecks,
        models=Models.routed_models,
        prices=Models.prices,
        webhooks=Webhooks.webhook_check,
        times=cron_times,
    )
    create_schedule = singleton(CreateSchedule, schedules=schedules, checks=schedule_checks, times=cron_times)
    update_schedule = singleton(UpdateSchedule, schedules=schedules, checks=schedule_checks, times=cron_times)
    get_schedule = singleton(GetSchedule, schedules=schedules)
    list_schedules = singleton(ListSchedules, schedules=schedules)
    delete_schedule = singleton(DeleteSchedule, schedules=schedules)
