"""The focus room: which notes a prompt carries, and their text. Law: plain inputs in, a value out.

`block.render` is the block of SPEC section 9, `index.render_index` the index of section 7, `loading` what of a
store's index they know, `evidence.fitting` the rule of abstain, `gone` the paths that are no more, `text` what
of a note may stand in a prompt. Pure.
"""

from memd.focus.block import Block, Card, Reader, Shelf, Shown, is_conflict_copy, render
from memd.focus.index import Index, render_index
from memd.focus.loading import Loaded, lines_of, load
from memd.focus.text import Dialect

__all__ = [
    "Block",
    "Card",
    "Dialect",
    "Index",
    "Loaded",
    "Reader",
    "Shelf",
    "Shown",
    "is_conflict_copy",
    "lines_of",
    "load",
    "render",
    "render_index",
]
