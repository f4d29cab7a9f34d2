"""From a request to what it plans. Law: a suspended store plans nothing but its own mending.

SPEC sections 4 and 5.
"""

from collections.abc import Callable
from typing import Any

from memd.errors import MemdError, NotFound, Suspended
from memd.store import moving, rebuilding, reconciling, saving, sourcing
from memd.store.model import (
    Adopt,
    Bring,
    Count,
    CountSession,
    Forget,
    Leave,
    Outcome,
    Put,
    Rebuild,
    Rebuilt,
    Reconcile,
    Reconciled,
    Rename,
    Request,
    Restore,
    Save,
    Take,
)
from memd.store.plan import Plan

_PLANNERS: dict[type[Request], Callable[[Plan, Any], Outcome]] = {
    Save: saving.save,
    Forget: saving.forget,
    Count: saving.count,
    CountSession: saving.count_session,
    Restore: moving.restore,
    Rename: moving.rename,
    Take: moving.take,
    Put: moving.put,
    Adopt: moving.adopt,
    Bring: sourcing.bring,
    Leave: moving.leave,
}


def plan_request(plan: Plan, request: Request, settle_s: float) -> Outcome:
    """Plan one request against the state the ones before it left. Errors: whatever refuses it."""
    if isinstance(request, Reconcile):
        return reconciling.reconcile(plan, request, settle_s)
    if isinstance(request, Rebuild):
        return rebuilding.rebuild(plan)
    if plan.suspended:
        raise suspended(len(plan.missing))
    return _PLANNERS[type(request)](plan, request)


def makes_store(request: Request) -> bool:
    """Whether a request is reason to make a store's directory (SPEC 1: only a write is)."""
    return isinstance(request, Save | Put | Adopt | Bring | CountSession)


def lets_go(request: Request) -> bool:
    """Whether a person has said that what is gone may go."""
    return isinstance(request, Reconcile) and request.accept


def nowhere(request: Request, held: int) -> Outcome | MemdError:
    """What a request comes to where there is no directory; `held` is how many notes there were."""
    if isinstance(request, Reconcile):
        return Reconciled(suspended=bool(held))
    if held:
        return suspended(held)
    if isinstance(request, Rebuild):
        return Rebuilt(live=0, restored=0, forgotten=0, differ=(), missing=(), broken_line=None)
    return NotFound("there is no such note: the store is empty")


def suspended(missing: int) -> Suspended:
    """The guard's refusal, with its remedies (SPEC 5)."""
    return Suspended(
        f"{missing} notes are gone from the store at once, so it is suspended; "
        "`memctl rebuild` brings them back, `memctl reconcile --accept` lets them go"
    )
