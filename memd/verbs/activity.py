"""Who is told what happens. Law: a subscription lives as long as its connection, and needs no store to be sound.

SPEC section 7, `activity.subscribe`.
"""

from contextlib import suppress

from memd.errors import MemdError
from memd.protocol import PlaceParams, SubscribeParams, SubscribeReply
from memd.verbs.call import Call


async def subscribe(call: Call, params: SubscribeParams) -> SubscribeReply:
    """`activity.subscribe`: of one place, or of all. Errors: Refused (field `cwd`), NotFound for no such session.

    The place's stores are opened, since of an edit in one that nobody has opened there is nothing to be heard.
    """
    if params.session is None and params.cwd is None:
        call.library.feed.subscribe(call.outbox, None)
        return SubscribeReply(subscribed=True)
    place = call.place(PlaceParams(session=params.session, cwd=params.cwd))
    call.library.feed.subscribe(call.outbox, place, params.session)
    for store in place:
        with suppress(MemdError):  # it is told of what happens once the store can be read
            await call.library.open(store)
    return SubscribeReply(subscribed=True)
