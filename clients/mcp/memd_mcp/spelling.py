"""memd's words as an MCP client reads them. Law: a call that a text names works when it is made as named.

What the daemon says in replies names the calls of a Python kernel; here they become those of the tools.
"""

from __future__ import annotations

import re

_CALLS = (
    (re.compile(r"\b(?:await )?memory\.search\("), "memory_search(query="),
    (re.compile(r"\b(?:await )?memory\.read\("), "memory_read(name="),
    (re.compile(r"\b(?:await )?memory\.forget\("), "memory_forget(name="),
    (re.compile(r"\b(?:await )?memory\.save\((?:body|(?=[^\w]))"), "memory_save(markdown=…"),
    (re.compile(r"\b(?:await )?memory\.list\("), "memory_list("),
    (re.compile(r"\b(?:await )?history\.search\("), "history_search(query="),
    (re.compile(r'\b(?:await )?history\.read\("([^"]*)"\)'), r"the resource \1"),
)


def spelled(text: str) -> str:
    """A text of memd's own with its calls spelled as tools."""
    for call, tool in _CALLS:
        text = call.sub(tool, text)
    return text
