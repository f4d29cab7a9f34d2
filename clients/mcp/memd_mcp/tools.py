"""The seven tools. Law: a table; what a tool takes, gives and does to the notes stands here and nowhere else.

The hints: a read, a search, a list and a focus leave every note as it is; a save can replace a note's text, whose
earlier versions are all kept; a forget deletes for good, and a second one finds nothing. None reaches out of memd.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Schema = dict[str, Any]

_SCOPE: Schema = {"type": "string", "enum": ["repo", "global"]}
_TYPE: Schema = {"type": "string", "enum": ["user", "feedback", "project", "reference"]}
_TEXT: Schema = {"type": "string"}
_TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_WARNINGS: Schema = {"type": "array", "items": _TEXT}
_NOTICE: Schema = {"type": "string", "description": "What was left out, and the call that gives it."}
_POINTER: Schema = {
    "type": "object",
    "properties": {"op": _TEXT, "name": _TEXT, "scope": _SCOPE, "hash": _TEXT},
    "required": ["op", "name", "scope", "hash"],
}


def _said(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description}


def _taken(properties: dict[str, Schema], *required: str) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _given(properties: dict[str, Schema], *required: str) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required)}


_WHICH = _said(_SCOPE, "repo: this repository's store; global: everywhere. Without it both, the repository's first.")
_OFFSET = _said(_COUNT, "Leave out so many from the beginning; a notice names the next page's.")
_LIMIT: Schema = {"type": "integer", "minimum": 1}


@dataclass(frozen=True)
class Tool:
    """One tool; `verb` is the daemon's. The hints are MCP's own."""

    name: str
    verb: str
    title: str
    description: str
    takes: Schema
    gives: Schema
    reads_only: bool = True
    destroys: bool = False
    is_idempotent: bool = True


TOOLS = {
    tool.name: tool
    for tool in (
        Tool(
            name="memory_save",
            verb="memory.save",
            title="Save a note",
            description=(
                "Keep one fact for later sessions, as a note: a whole markdown note, or a body with its fields"
                " beside it. Search first: a name that exists is updated, and every earlier version is kept. The"
                " description is the hook: one line, the situation, then the rule. A session has few saves."
            ),
            takes=_taken(
                {
                    "markdown": _said(_TEXT, "The body, or a whole note with its block of name, description, type."),
                    "name": _said(_TEXT, "A few words in kebab-case; made from the description when left out."),
                    "description": _said(_TEXT, "One line of at most 240 characters."),
                    "type": _said(_TYPE, "user, feedback (how to work), project, or reference (where something is)."),
                    "scope": _said(_SCOPE, "repo (when left out), or global when it holds in every repository."),
                    "expect": _said(
                        _TEXT_OR_NULL,
                        'The hash last seen, "exists", or null for "must not exist"; else nothing is written.',
                    ),
                },
                "markdown",
            ),
            gives=_given(
                {
                    "name": _TEXT,
                    "description": _TEXT,
                    "type": _TYPE,
                    "scope": _SCOPE,
                    "updated": {"type": "boolean"},
                    "hash": _TEXT,
                    "warnings": _WARNINGS,
                    "saved": _COUNT,
                    "saves_left": {"type": ["integer", "null"]},
                    "pointer": _POINTER,
                },
                "name",
                "scope",
                "updated",
                "hash",
                "warnings",
            ),
            reads_only=False,
            is_idempotent=False,
        ),
        Tool(
            name="memory_read",
            verb="memory.read",
            title="Read a note",
            description=(
                "One note's text, by its name or its hook; the closest one, with a warning, where none has it. What"
                " a note says was true when it was written: check it against the repository."
            ),
            takes=_taken(
                {
                    "name": _said(_TEXT, "The note's name or its hook."),
                    "scope": _WHICH,
                    "offset": _said(_COUNT, "Begin at this character; a notice names it where a text was cut."),
                },
                "name",
            ),
            gives=_given(
                {
                    "name": _TEXT,
                    "description": _TEXT,
                    "type": {"type": ["string", "null"]},
                    "scope": _SCOPE,
                    "text": _TEXT,
                    "hash": _TEXT,
                    "warnings": _WARNINGS,
                    "pointer": _POINTER,
                    "notice": _NOTICE,
                },
                "name",
                "scope",
                "text",
                "hash",
                "warnings",
            ),
        ),
        Tool(
            name="memory_search",
            verb="memory.search",
            title="Search the notes",
            description="The notes of both stores that share words with a query, best first: names and hooks.",
            takes=_taken(
                {
                    "query": _said(_TEXT, "Words; rare ones count most."),
                    "limit": _said(_LIMIT, "How many (5 when left out)."),
                    "offset": _OFFSET,
                    "scope": _WHICH,
                },
                "query",
            ),
            gives=_given(
                {
                    "hits": {
                        "type": "array",
                        "items": _given({"name": _TEXT, "description": _TEXT, "scope": _SCOPE}, "name", "scope"),
                    },
                    "total": _COUNT,
                    "notice": _NOTICE,
                },
                "hits",
                "total",
            ),
        ),
        Tool(
            name="memory_list",
            verb="memory.list",
            title="List the notes",
            description="Every note of both stores with its hook, type and how much it is used.",
            takes=_taken(
                {
                    "scope": _WHICH,
                    "type": _said(_TYPE, "Only notes of this type."),
                    "limit": _said(_LIMIT, "How many (all when left out)."),
                    "offset": _OFFSET,
                }
            ),
            gives=_given(
                {
                    "notes": {
                        "type": "array",
                        "items": _given(
                            {
                                "name": _TEXT,
                                "scope": _SCOPE,
                                "type": {"type": ["string", "null"]},
                                "description": _TEXT,
                                "hash": _TEXT,
                                "saves": _COUNT,
                                "reads": _COUNT,
                                "last": {"type": ["integer", "null"]},
                                "unparsed": {"type": "boolean"},
                                "shadowed": {"type": "boolean"},
                            },
                            "name",
                            "scope",
                            "description",
                            "hash",
                        ),
                    },
                    "total": _COUNT,
                    "notice": _NOTICE,
                },
                "notes",
                "total",
            ),
        ),
        Tool(
            name="memory_forget",
            verb="memory.forget",
            title="Forget a note",
            description=(
                "Delete a note that is wrong, with every version of it; never fuzzy: its exact name or hook. The"
                " receipt names what still holds a removed text."
            ),
            takes=_taken({"name": _said(_TEXT, "The note's name or its hook."), "scope": _WHICH}, "name"),
            gives=_given(
                {
                    "name": _TEXT,
                    "scope": _SCOPE,
                    "receipt": _given(
                        {"versions": _COUNT, "bytes": _COUNT, "left": {"type": "array", "items": _TEXT}},
                        "versions",
                        "bytes",
                        "left",
                    ),
                    "pointer": _POINTER,
                },
                "name",
                "scope",
                "receipt",
            ),
            reads_only=False,
            destroys=True,
        ),
        Tool(
            name="memory_focus",
            verb="memory.focus",
            title="The notes a prompt earns",
            description=(
                "The one block of notes that this session gets, chosen by its first prompt; every later call gives"
                " the same block."
            ),
            takes=_taken({"prompt": _said(_TEXT, "What the user asked, in their words.")}, "prompt"),
            gives=_given(
                {
                    "text": _TEXT_OR_NULL,
                    "fenced": _TEXT_OR_NULL,
                    "notes": {"type": "array", "items": {"type": "object"}},
                    "total": _COUNT,
                    "budget": _COUNT,
                    "frozen": {"type": "boolean"},
                },
                "text",
                "fenced",
                "notes",
                "total",
                "frozen",
            ),
        ),
        Tool(
            name="history_search",
            verb="history.search",
            title="Search past sessions",
            description=(
                "What people and agents said in past sessions of this repository, best first; a hit's url is a"
                " resource that holds the whole entry."
            ),
            takes=_taken(
                {
                    "query": _said(_TEXT, "Words; rare ones count most."),
                    "limit": _said(_LIMIT, "How many (8 when left out)."),
                    "offset": _OFFSET,
                },
                "query",
            ),
            gives=_given(
                {
                    "hits": {
                        "type": "array",
                        "items": _given(
                            {
                                "session": _TEXT,
                                "entryId": _TEXT,
                                "type": {"type": "string", "enum": ["user", "assistant", "summary"]},
                                "snippet": _TEXT,
                                "url": _TEXT,
                                "cut": {"type": "boolean"},
                            },
                            "session",
                            "entryId",
                            "type",
                            "snippet",
                            "url",
                        ),
                    },
                    "total": _COUNT,
                    "notice": _NOTICE,
                },
                "hits",
                "total",
            ),
        ),
    )
}
"""Every tool by its name."""
