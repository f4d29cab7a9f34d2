"""A cancellation goes into the verb, in its own task, and stops before what is shielded."""

import anyio
from anyio.abc import TaskGroup

from memd.rpc import Dispatcher
from support.fake_verbs import VERBS, Call, Gate, gated, outbox, request


async def _cancel_while(gate: Gate, method: str) -> None:
    dispatcher = Dispatcher({**VERBS, **gated(gate)}, Call)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(dispatcher.answer, request(method), outbox())
        await gate.entered.wait()
        tasks.start_soon(_open_later, gate, tasks)
        tasks.cancel_scope.cancel()


async def _open_later(gate: Gate, tasks: TaskGroup) -> None:
    """Open the gate once the cancellation had every chance to reach the verb."""
    with anyio.CancelScope(shield=True):
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        gate.opened.set()


def test_a_cancelled_request_cancels_its_verb() -> None:
    gate = Gate()
    anyio.run(_cancel_while, gate, "gate.wait")
    assert gate.cancelled.is_set()
    assert gate.finished == []


def test_a_commit_is_not_reached_by_a_cancellation() -> None:
    gate = Gate()
    anyio.run(_cancel_while, gate, "gate.commit")
    assert not gate.cancelled.is_set()
    assert gate.finished == ["gate.commit"]


def test_members_of_a_batch_run_one_after_the_other() -> None:
    gate = Gate()

    async def batch() -> None:
        dispatcher = Dispatcher({**VERBS, **gated(gate)}, Call)
        line = b"[" + request("gate.wait", 1) + b"," + request("gate.commit", 2) + b"]"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(dispatcher.answer, line, outbox())
            await gate.entered.wait()
            gate.entered = anyio.Event()
            for _ in range(10):
                await anyio.lowlevel.checkpoint()
            assert not gate.entered.is_set()
            gate.opened.set()

    anyio.run(batch)
    assert gate.finished == ["gate.wait", "gate.commit"]
