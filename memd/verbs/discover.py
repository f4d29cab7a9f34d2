"""The OpenRPC document. Law: it is made from the types that decode the requests, so it cannot say anything else.

SPEC section 7, `rpc.discover`.
"""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

import memd
from memd import errors
from memd.protocol import DiscoverReply, Params, Verb
from memd.verbs.call import Call

OPENRPC = "1.3.2"
_REF = "#/components/schemas/{name}"


def of(table: Sequence[Verb[Call, Any, Any]]) -> Callable[[Call, Params], Awaitable[DiscoverReply]]:
    """The verb that describes `table`; the document is made when it is first asked for."""
    made: list[DiscoverReply] = []

    async def discover(_call: Call, _params: Params) -> DiscoverReply:
        """`rpc.discover`."""
        if not made:
            made.append(document(table))
        return made[0]

    return discover


def document(table: Sequence[Verb[Call, Any, Any]]) -> DiscoverReply:
    """The OpenRPC document of a table of verbs."""
    types = [kind for verb in table for kind in (verb.params, verb.reply)]
    references, components = msgspec.json.schema_components(types, schema_hook=any_json, ref_template=_REF)
    schemas = iter(references)
    methods = [method(verb, next(schemas), next(schemas), components) for verb in table]
    return DiscoverReply(
        openrpc=OPENRPC,
        info={"title": "memd", "version": memd.__version__, "license": {"name": "MIT"}},
        methods=methods,
        components={"schemas": components, "errors": {kind.kind: error(kind) for kind in kinds()}},
    )


def any_json(kind: type) -> dict[str, Any]:
    """The schema of `object`, which stands for any JSON."""
    if kind is object:
        return {"description": "any JSON"}
    raise NotImplementedError(kind)


def method(
    verb: Verb[Call, Any, Any], params: dict[str, Any], reply: dict[str, Any], components: dict[str, Any]
) -> dict[str, Any]:
    """One verb of the document: each parameter by name, as the decoder takes it."""
    schema = components[params["$ref"].rpartition("/")[2]]
    required = schema.get("required", ())
    given: dict[str, Any] = {
        "name": verb.name,
        "paramStructure": "by-name",
        "params": [
            {"name": name, "required": name in required, "schema": kind}
            for name, kind in schema.get("properties", {}).items()
        ],
        "result": {"name": f"{verb.name} reply", "schema": reply},
        "errors": [{"$ref": f"#/components/errors/{kind.kind}"} for kind in kinds()],
    }
    said = inspect.getdoc(verb.run)
    if said:
        given["summary"] = said.partition("\n")[0]
    if verb.place:
        given["description"] = "Names its place by exactly one of `session` and `cwd`."
    return given


def kinds() -> list[type[errors.MemdError]]:
    """The errors of memd's own, in the order of their codes."""
    return sorted(errors.MemdError.__subclasses__(), key=lambda kind: -kind.code)


def error(kind: type[errors.MemdError]) -> dict[str, Any]:
    """One error of the document."""
    return {"code": kind.code, "message": (inspect.getdoc(kind) or kind.kind).partition("\n")[0]}
