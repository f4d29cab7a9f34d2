"""A verb gets the outbox of the connection that its line came by, and may use it after its reply."""

import anyio

from memd.live import Outbox
from memd.protocol import Verb
from memd.rpc import Dispatcher
from support.fake_verbs import Call, EchoParams, EchoReply, outbox, request


async def _listen(call: Call, params: EchoParams) -> EchoReply:
    """Says what it was given later, by the outbox."""
    call.outbox.use(lambda: None)
    call.outbox.push(f"{params.value}\n".encode())
    return EchoReply(value=params.value, method=call.method)


VERBS = {"fake.listen": Verb("fake.listen", EchoParams, EchoReply, _listen)}


def pushed(*lines: tuple[bytes, Outbox]) -> None:
    """Answer lines, each by its own outbox."""

    async def answer() -> None:
        dispatcher = Dispatcher(VERBS, Call)
        for line, box in lines:
            await dispatcher.answer(line, box)

    anyio.run(answer)


def test_each_line_s_verb_gets_that_line_s_outbox() -> None:
    first, second, unused = outbox(), outbox(), outbox()
    pushed((request("fake.listen", value=1), first), (request("fake.listen", value=2), second))
    assert anyio.run(first.take) == b"1\n"
    assert anyio.run(second.take) == b"2\n"
    assert [box.is_in_use for box in (first, second, unused)] == [True, True, False]


def test_members_of_a_batch_and_notifications_share_it() -> None:
    box = outbox()
    notification = b'{"jsonrpc":"2.0","method":"fake.listen","params":{"value":3}}'
    batch = b"[" + request("fake.listen", 1, value=1) + b"," + request("fake.listen", 2, value=2) + b"]"
    pushed((batch, box), (notification, box))
    assert anyio.run(box.take) == b"1\n2\n3\n"
