"""How PostgreSQL plans statements that find few rows by keys, as units in stages and units by keys
do."""

from typing import Final

PLANS_BY_KEYS: Final = {
    # Once for all values (PostgreSQL, 20.7.4): a plan for each costs 0.15 ms more in a table with
    # partitions.
    "plan_cache_mode": "force_generic_plan",
    # Such a plan stays while a table grows, and may come from when it was empty.
    "enable_seqscan": "off",
}
