"""Who computes when: texts at once, scores between them, and only for the newest edit of a page."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")
MOST_PAGES = 16
MOST_TRIED = 200


class Cancelled(Exception):
    """The page has asked for something newer, or is closed."""


@dataclass(eq=False)
class Job:
    """One piece of work for one page; it may be called off from another thread."""

    edit: str = ""
    done: int = 0
    total: int = 0
    called_off: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Raise :class:`Cancelled` where nobody waits for it any more."""
        if self.called_off.is_set():
            raise Cancelled


@dataclass
class Page:
    """What one open page has tried, and the work that it waits for, by kind."""

    tried: OrderedDict[str, dict[str, Any]] = field(default_factory=OrderedDict)
    waiting: dict[str, Job] = field(default_factory=dict)

    def start(self, kind: str, edit: str = "") -> Job:
        """A new job, in the place of the page's last one of this kind."""
        if (before := self.waiting.get(kind)) is not None:
            before.called_off.set()
        job = self.waiting[kind] = Job(edit)
        return job

    def finish(self, kind: str, job: Job) -> None:
        """Forget a job, unless a newer one has its place already."""
        if self.waiting.get(kind) is job:
            del self.waiting[kind]

    def remember(self, edit: str, cut: dict[str, Any]) -> None:
        """A scored edit, for the list of those tried; the newest last."""
        self.tried.pop(edit, None)
        self.tried[edit] = cut
        while len(self.tried) > MOST_TRIED:
            self.tried.popitem(last=False)


class Pages(OrderedDict[str, Page]):
    """The pages by the identifier that each sends; of very many, the latest."""

    def of(self, identifier: str) -> Page:
        """The page called so, a new one where there is none."""
        page = self.setdefault(identifier, Page())
        self.move_to_end(identifier)
        while len(self) > MOST_PAGES:
            _, oldest = self.popitem(last=False)
            for job in oldest.waiting.values():
                job.called_off.set()
        return page


class Desk:
    """Two threads that compute: what a person waits for at once, and scores, which give way.

    Two and no more: every thread that calls torch keeps helpers of its own.
    """

    def __init__(self) -> None:
        self._quick = ThreadPoolExecutor(1, "microtome-quick")
        self._slow = ThreadPoolExecutor(1, "microtome-slow")
        self._n_quick = 0
        self._changed = threading.Condition()

    async def quick(self, job: Job, work: Callable[[], T]) -> T:
        """The result of ``work``, which is done before any score continues."""
        self._count(1)
        try:
            return await self._run(self._quick, job, work)
        finally:
            self._count(-1)

    async def slow(self, job: Job, work: Callable[[], T]) -> T:
        """The result of ``work``, one after another."""
        return await self._run(self._slow, job, work)

    def give_way(self, job: Job, done: int, total: int) -> None:
        """Called between the steps of a score: waits while a person does; ends what is off."""
        job.done, job.total = done, total
        with self._changed:
            self._changed.wait_for(lambda: self._n_quick == 0 or job.called_off.is_set())
        job.check()

    async def _run(self, pool: ThreadPoolExecutor, job: Job, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, partial(_checked, job, work))

    def _count(self, change: int) -> None:
        with self._changed:
            self._n_quick += change
            self._changed.notify_all()


def _checked(job: Job, work: Callable[[], T]) -> T:
    job.check()
    return work()
