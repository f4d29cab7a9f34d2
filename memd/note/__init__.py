"""Note text to Note and back. Law: reading never fails, and rendering what canonical text gave is that text.

Pure: bytes and strings in, structs and bytes out. SPEC section 2.
"""

from .model import MAX_BODY, MAX_FILE, MAX_HOOK, Block, Note, NoteType, Reading, Scope, Trouble
from .names import MAX_SLUG, MAX_SLUG_BYTES, RESERVED, SUFFIX, derived_slug, is_note_name, slug
from .reading import entry_value, extra_key, first_line, is_open, one_line, parse, read
from .rendering import plain_or_quoted, quote, render
from .rewriting import renamed, tagged

__all__ = [
    "MAX_BODY",
    "MAX_FILE",
    "MAX_HOOK",
    "MAX_SLUG",
    "MAX_SLUG_BYTES",
    "RESERVED",
    "SUFFIX",
    "Block",
    "Note",
    "NoteType",
    "Reading",
    "Scope",
    "Trouble",
    "derived_slug",
    "entry_value",
    "extra_key",
    "first_line",
    "is_note_name",
    "is_open",
    "one_line",
    "parse",
    "plain_or_quoted",
    "quote",
    "read",
    "renamed",
    "render",
    "slug",
    "tagged",
]
