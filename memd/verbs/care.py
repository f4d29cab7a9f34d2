"""Check, verify, rebuild and reconcile. Law: what is wrong is named, store by store, and mended only when asked.

SPEC section 7.
"""

import time
from collections.abc import Awaitable, Callable, Iterable

import anyio
import msgspec

from memd import alike, protocol
from memd.focus import is_conflict_copy as is_copy
from memd.live import LiveStore
from memd.protocol import (
    CheckParams,
    CheckReply,
    Hint,
    HintKind,
    PlaceParams,
    RebuildParams,
    RebuildReply,
    ReconcileParams,
    ReconcileReply,
    StoreRebuild,
    StoreReconcile,
)
from memd.settle import QUIET
from memd.store import Finding, Rebuild, Rebuilt, Reconcile, Reconciled
from memd.verbs.call import Call, printable, shown

CLOCK_S = 0.005
"""Seconds a wait goes on past its end, so that the wall clock the decision reads is past it too."""


async def check(call: Call, params: CheckParams) -> CheckReply:
    """`memory.check`: every trouble of the files, and what is worth a look where that is asked for."""
    stores = await call.stores(params)
    hints = [hint for store in stores for hint in await hints_of(store)] if params.hints else ()
    return msgspec.structs.replace(reply(await found(stores, check_store)), hints=tuple(hints))


async def hints_of(store: LiveStore) -> list[Hint]:
    """A store's conflict copies and near-duplicates, each of these once, however many it repeats."""
    hooks = {name: entry.hook for name, entry in sorted(store.entries.items())}
    copies = [hint(store, "conflict_copy", name, "a sync tool's conflict copy") for name in hooks if is_copy(name)]
    twins = await anyio.to_thread.run_sync(lambda: list(alike.twins(hooks)))
    return copies + [
        hint(store, "near_duplicate", twin, f"its hook nearly repeats that of {name}") for name, twin in twins
    ]


def hint(store: LiveStore, kind: HintKind, name: str, reason: str) -> Hint:
    """A hint with its store's scope."""
    return Hint(kind=kind, scope=store.scope, name=printable(name), reason=shown(reason)[0])


async def verify(call: Call, params: PlaceParams) -> CheckReply:
    """`memory.verify`: what rebuild would name, changing nothing."""
    stores = await call.stores(params)
    return reply(await found(stores, verify_store))


async def found(
    stores: Iterable[LiveStore], look: Callable[[LiveStore], Awaitable[tuple[Finding, ...]]]
) -> list[protocol.Finding]:
    """The findings of each store, repo first."""
    return [as_finding(store, finding) for store in stores if store.opened for finding in await look(store)]


async def check_store(store: LiveStore) -> tuple[Finding, ...]:
    """What is wrong with one store's files."""
    return await store.inspect(store.store.check)


async def verify_store(store: LiveStore) -> tuple[Finding, ...]:
    """What of one store differs from its journal."""
    return await store.inspect(store.store.verify)


def reply(findings: list[protocol.Finding]) -> CheckReply:
    """The reply that holds these findings."""
    return CheckReply(ok=not findings, findings=tuple(findings))


def as_finding(store: LiveStore, finding: Finding) -> protocol.Finding:
    """A finding with its store's scope."""
    return protocol.Finding(
        kind=finding.kind,
        scope=store.scope,
        reason=finding.reason,
        name=finding.name,
        file=finding.file,
        line=finding.line,
    )


async def rebuild(call: Call, params: RebuildParams) -> RebuildReply:
    """`memory.rebuild`, both stores. A person's verb. `ok` is false on a missing object or a broken chain.

    No store is opened for it first: what opening writes and a disk refuses would not refuse the rebuild.
    """
    call.person_only(params)
    stores = await call.stores(params) if params.dry_run else call.place(params).stores()
    repo, everywhere = [await rebuild_store(call, store, params) for store in stores]
    ok = not any(store.missing or store.broken_line for store in (repo, everywhere))
    return RebuildReply(ok=ok, repo=repo, global_=everywhere)


async def rebuild_store(call: Call, store: LiveStore, params: RebuildParams) -> StoreRebuild:
    """One store rebuilt, or what that would do."""
    if params.dry_run:
        return rebuilt_store(await store.preview(Rebuild(), Rebuilt))
    return rebuilt_store(await call.write(store, Rebuild(), Rebuilt))


def rebuilt_store(rebuilt: Rebuilt) -> StoreRebuild:
    """One store's part of the reply."""
    return StoreRebuild(
        live=rebuilt.live,
        restored=rebuilt.restored,
        forgotten=rebuilt.forgotten,
        differ=rebuilt.differ,
        missing=rebuilt.missing,
        broken_line=rebuilt.broken_line,
    )


async def reconcile(call: Call, params: ReconcileParams) -> ReconcileReply:
    """`memory.reconcile`, both stores; what is not yet quiet is waited for once. `accept` is a person's."""
    if params.accept:
        call.person_only(params)
    place = call.place(params)
    return ReconcileReply(
        repo=await reconciled_store(call, place.repo, params),
        global_=await reconciled_store(call, place.everywhere, params),
    )


async def reconciled_store(call: Call, store: LiveStore, params: ReconcileParams) -> StoreReconcile:
    """Reconcile one store, and again as what was not yet quiet becomes so (SPEC 5): the last deletion's settle is
    waited out once, and no more, whatever goes on changing.
    """
    if params.dry_run:
        return told(await store.preview(Reconcile(params.accept), Reconciled))
    taken = await store.reconcile(accept=params.accept)
    call.library.keep(store)
    end = time.time() + max(call.library.config.settle_ms / 1000, QUIET) + CLOCK_S
    while taken.wait_until is not None and taken.wait_until <= end:
        await anyio.sleep(max(0.0, taken.wait_until - time.time()) + CLOCK_S)
        taken = taken.then(await store.reconcile(accept=params.accept))
    return told(taken)


def told(taken: Reconciled) -> StoreReconcile:
    """One store's part of the reply."""
    return StoreReconcile(
        adopted=len(taken.adopted),
        edited=len(taken.edited),
        forgotten=len(taken.forgotten),
        suspended=taken.suspended,
    )
