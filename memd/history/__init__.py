"""Past sessions: readers of transcripts and the corpus they fill. Law: what is searched is read, never written.

`formats` knows what a line says, `lines` cuts a file into lines without holding it, `transcript` is one file as far
as it was read, `sources` finds the files, `cache` keeps what was counted over a restart, and `corpus` is one
repository's sessions, ranked like notes. SPEC section 11. Blocking code.
"""

from memd.history.cache import Cache
from memd.history.corpus import Corpus, Hit, Page, Progress, address
from memd.history.formats import Kind
from memd.history.snippet import SNIPPET_MAX
from memd.history.sources import Catalog, Named, Sources, Whose
from memd.history.transcript import Entry

__all__ = [
    "SNIPPET_MAX",
    "Cache",
    "Catalog",
    "Corpus",
    "Entry",
    "Hit",
    "Kind",
    "Named",
    "Page",
    "Progress",
    "Sources",
    "Whose",
    "address",
]
