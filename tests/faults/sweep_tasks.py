"""Many tasks in a few processes. Law: what ends a process ends a task at most, and never the sweep."""

import multiprocessing
import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")

TRIES: Final = 2
"""Processes that a task may end before it is lost: something else may have ended the first."""


def carried_out(do: Callable[[T], R], tasks: Sequence[T], jobs: int, lost: Callable[[T], R]) -> Iterator[tuple[T, R]]:
    """Each task, in order, with what `do` made of it in one of `jobs` processes; `lost` says what it is where each
    process that had it ended. What `do` raises is raised.
    """
    free: queue.SimpleQueue[ProcessPoolExecutor] = queue.SimpleQueue()
    for _ in range(jobs):
        free.put(a_process())

    def one(task: T) -> R:
        for _ in range(TRIES):
            process = free.get()
            try:
                return process.submit(do, task).result()
            except BrokenProcessPool:
                process.shutdown()
                process = a_process()
            finally:
                free.put(process)
        return lost(task)

    try:
        with ThreadPoolExecutor(jobs) as threads:
            yield from zip(tasks, threads.map(one, tasks), strict=True)
    finally:
        for _ in range(jobs):
            free.get().shutdown()


def a_process() -> ProcessPoolExecutor:
    """One process that begins afresh, once it has something to do."""
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
