"""``microtome replicate``: a paper's exhibits as data, interpreted on any models and data."""

from microtome.replication.estimate import Estimate, estimate
from microtome.replication.page import exhibits_of, replication_page
from microtome.replication.planning import Plan, Replication, plan_of, replication_of
from microtome.replication.running import Done, replicate

__all__ = [
    "Done",
    "Estimate",
    "Plan",
    "Replication",
    "estimate",
    "exhibits_of",
    "plan_of",
    "replicate",
    "replication_of",
    "replication_page",
]
