"""The store room: the one way notes change. Law: everything ends in `Store.commit`, under one lock, in one order.

See `store.Store`; the requests and what they answer are in `model`. SPEC sections 4 and 5.
"""

from memd.store.model import (
    Author,
    Blocked,
    Change,
    Committed,
    Count,
    Counted,
    Entry,
    Finding,
    Forget,
    Forgotten,
    Outcome,
    Rebuild,
    Rebuilt,
    Reconcile,
    Reconciled,
    Request,
    Save,
    Saved,
    View,
)
from memd.store.state import JOURNAL
from memd.store.store import Store

__all__ = [
    "JOURNAL",
    "Author",
    "Blocked",
    "Change",
    "Committed",
    "Count",
    "Counted",
    "Entry",
    "Finding",
    "Forget",
    "Forgotten",
    "Outcome",
    "Rebuild",
    "Rebuilt",
    "Reconcile",
    "Reconciled",
    "Request",
    "Save",
    "Saved",
    "Store",
    "View",
]
