"""Hello, status and stop. Law: these need no place and touch no store.

SPEC section 7.
"""

import os
import time

import memd
from memd.errors import NoProtocol
from memd.protocol import (
    PROTOCOL_MAX,
    PROTOCOL_MIN,
    Health,
    HelloParams,
    HelloReply,
    HistoryProgress,
    Params,
    StatusReply,
    StopReply,
)
from memd.verbs.call import Call

CAPABILITIES = ("history", "memory")
"""What this daemon serves beyond `daemon.*`."""


async def hello(call: Call, params: HelloParams) -> HelloReply:
    """`daemon.hello`. Errors: NoProtocol when the caller's version is not served."""
    if not PROTOCOL_MIN <= params.protocol <= PROTOCOL_MAX:
        raise NoProtocol(
            f"protocol {params.protocol} is not served, {PROTOCOL_MIN} to {PROTOCOL_MAX} are; "
            "install a client and a daemon of one version"
        )
    return HelloReply(
        version=memd.__version__,
        protocol_min=PROTOCOL_MIN,
        protocol_max=PROTOCOL_MAX,
        capabilities=CAPABILITIES,
        pid=os.getpid(),
        home=call.library.home_id,
    )


async def status(call: Call, _params: Params) -> StatusReply:
    """`daemon.status`."""
    runtime = call.library.runtime
    now = time.monotonic()
    return StatusReply(
        version=memd.__version__,
        pid=os.getpid(),
        uptime_s=round(now - runtime.started, 3),
        stores=call.library.store_count,
        watching=runtime.watching,
        last_event_s=since(runtime.last_event, now),
        last_scan_s=since(runtime.last_scan, now),
        connections=runtime.connections,
        history=HistoryProgress(**call.library.history.progress._asdict()),
        findings=tuple(Health(kind=kind, reason=reason) for kind, reason in sorted(runtime.findings.items())),
    )


def since(moment: float | None, now: float) -> float | None:
    """Seconds since a moment; None when it never was."""
    return None if moment is None else round(now - moment, 3)


async def stop(call: Call, _params: Params) -> StopReply:
    """`daemon.stop`: the reply leaves, then the daemon finishes its writes and exits."""
    call.library.runtime.stop.set()
    return StopReply(stopping=True)
