"""A kernel, as small as one can be: a process that has `import memory` and its environment, and no more.

`kernel.py PART` lives one part of an agent's day and writes a line of JSON for each thing that came of it. After the
line `{"waits": null}` it goes on when it is sent a line.
"""

import asyncio
import json
import os
import sys
from typing import Any

import memd_client
import memory

ROOT = "day-1"
PROMPT = "how do I deploy the harbour service?"
CHILD = {"MEMD_SESSION": f"{ROOT}.child", "MEMD_DEPTH": "1"}


def tell(**what: object) -> None:
    """Write a line of JSON."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def wait() -> None:
    """Let the other side do what it has to."""
    tell(waits=None)
    sys.stdin.readline()


async def refusal(call: Any) -> list[str]:
    """The class and the words of the error that a call ends with."""
    try:
        await call
    except memory.errors.MemdError as error:
        return [type(error).__name__, error.message]
    return []


def set_plan_mode(*, read_only: bool) -> None:
    """What a host does when the person switches."""
    with memd_client.connect() as memd:
        switch = "ExitPlanMode" if read_only else None
        memd.call("session.update", {"session": ROOT, "read_only": read_only, "switch": switch})


async def morning() -> None:
    """A first prompt, a save, a daemon that dies meanwhile, a plan, a subagent."""
    transcript: list[dict[str, Any]] = []
    tell(started=await memory.start(ROOT, on_entry=transcript.append))
    tell(block=await memory.focus(PROMPT))
    tell(saved=await memory.save("High water is at noon.", name="tides", type="project", description="The tides"))
    tell(hits=[hit["name"] for hit in (await memory.search("noon"))["hits"]])
    wait()
    tell(again=await memory.focus("something else entirely", dialect="cli"))
    tell(text=(await memory.read("tides"))["text"])
    tell(saved=await memory.save("High water is at one.", name="tides", type="project", description="The tides"))
    set_plan_mode(read_only=True)
    tell(planning=await refusal(memory.save("x", type="user", description="d")))
    tell(planning=await refusal(memory.forget("tides")))
    tell(hits=[hit["name"] for hit in (await memory.search("one"))["hits"]])
    wait()
    tell(planning=await refusal(memory.save("x", type="user", description="d")))
    set_plan_mode(read_only=False)
    tell(index=(await memory.index())["text"])
    subagent = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "child", env=os.environ | CHILD, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await subagent.communicate()
    tell(child=json.loads(said)["refused"])
    tell(transcript=transcript)


async def child() -> None:
    """A subagent, to which its parent gave nothing but an environment."""
    calls = (
        memory.save("x", type="user"),
        memory.read("tides"),
        memory.search("noon"),
        memory.focus(PROMPT),
        memory.index(),
        memory.list(),
    )
    tell(refused=[await refusal(call) for call in calls])


async def evening() -> None:
    """The same agent in a new process."""
    tell(resumed=await memory.start(ROOT, resumed=True))
    tell(saved=await memory.save("Fly the flag on Sundays.", name="flag", type="user", scope="global"))
    tell(spent=await refusal(memory.save("x", type="user", description="d")))
    tell(forgot=(await memory.forget("tides"))["receipt"])
    tell(left=[note["name"] for note in (await memory.list_memory())["notes"]])


async def other() -> None:
    """A second root, which its host names in the environment and nobody starts."""
    tell(block=await memory.focus(PROMPT))
    tell(saved=await memory.save("x", name="other", type="user", description="d"))


async def loser() -> None:
    """A root whose state is lost behind its back."""
    tell(started=await memory.start(ROOT, save_cap=7))
    tell(saved=await memory.save("x", name="one", type="user", description="d"))
    wait()
    tell(saved=await memory.save("x", name="two", type="user", description="e"))


async def nobody() -> None:
    """A script that knows nothing of sessions."""
    tell(saved=await memory.save("y", name="nobody", type="user", description="e"))


if __name__ == "__main__":
    asyncio.run({part.__name__: part for part in (morning, child, evening, other, loser, nobody)}[sys.argv[1]]())
