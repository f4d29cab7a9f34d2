"""The verbs: one async function each, and the table of them. Law: what is not in the table does not exist.

SPEC section 7. Each takes a `Call` and its parameters and gives its reply; the wire's types are in `protocol`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from memd import protocol
from memd.protocol import Verb
from memd.verbs import (
    activity,
    arrivals,
    care,
    daemon,
    discover,
    focus,
    history,
    moving,
    notes,
    programs,
    ranking,
    records,
    sessions,
)
from memd.verbs.call import Call

__all__ = ["VERBS", "Call"]

_TABLE: tuple[Verb[Call, Any, Any], ...] = (
    Verb("memory.save", protocol.SaveParams, protocol.SaveReply, notes.save),
    Verb("memory.read", protocol.NameParams, protocol.ReadReply, notes.read),
    Verb("memory.search", protocol.SearchParams, protocol.SearchReply, ranking.search),
    Verb("memory.forget", protocol.NameParams, protocol.ForgetReply, notes.forget),
    Verb("memory.list", protocol.ListParams, protocol.ListReply, records.list_notes),
    Verb("memory.log", protocol.LogParams, protocol.LogReply, records.log),
    Verb("memory.show", protocol.ShowParams, protocol.ShowReply, notes.show),
    Verb("memory.stats", protocol.PlaceParams, protocol.StatsReply, records.stats),
    Verb("memory.check", protocol.CheckParams, protocol.CheckReply, care.check),
    Verb("memory.verify", protocol.PlaceParams, protocol.CheckReply, care.verify),
    Verb("memory.diff", protocol.DiffParams, protocol.DiffReply, moving.diff),
    Verb("memory.restore", protocol.RestoreParams, protocol.RestoreReply, moving.restore),
    Verb("memory.rename", protocol.RenameParams, protocol.RenameReply, moving.rename),
    Verb("memory.move", protocol.MoveParams, protocol.RenameReply, moving.move),
    Verb("memory.import", protocol.ImportParams, protocol.ImportReply, arrivals.import_notes),
    Verb("memory.import_claude", protocol.ImportClaudeParams, protocol.ImportProgramReply, programs.import_claude),
    Verb("memory.import_kimi", protocol.ImportKimiParams, protocol.ImportProgramReply, programs.import_kimi),
    Verb("store.list", protocol.StoreListParams, protocol.StoreListReply, arrivals.list_stores),
    Verb("store.adopt", protocol.StoreAdoptParams, protocol.StoreAdoptReply, arrivals.adopt_store),
    Verb("memory.rebuild", protocol.RebuildParams, protocol.RebuildReply, care.rebuild),
    Verb("memory.reconcile", protocol.ReconcileParams, protocol.ReconcileReply, care.reconcile),
    Verb("memory.focus", protocol.FocusParams, protocol.FocusReply, focus.focus),
    Verb("memory.index", protocol.IndexParams, protocol.IndexReply, focus.index),
    Verb("history.search", protocol.HistorySearchParams, protocol.HistorySearchReply, history.search),
    Verb("history.read", protocol.HistoryReadParams, protocol.HistoryReadReply, history.read),
    Verb("session.start", protocol.SessionStartParams, protocol.SessionStartReply, sessions.start),
    Verb("session.update", protocol.SessionUpdateParams, protocol.SessionUpdateReply, sessions.update),
    Verb("session.end", protocol.SessionEndParams, protocol.SessionEndReply, sessions.end),
    Verb("activity.subscribe", protocol.SubscribeParams, protocol.SubscribeReply, activity.subscribe),
    Verb("daemon.hello", protocol.HelloParams, protocol.HelloReply, daemon.hello),
    Verb("daemon.status", protocol.Params, protocol.StatusReply, daemon.status),
    Verb("daemon.stop", protocol.Params, protocol.StopReply, daemon.stop),
)

_DISCOVER: Verb[Call, Any, Any] = Verb("rpc.discover", protocol.Params, protocol.DiscoverReply, discover.of(_TABLE))

VERBS: Mapping[str, Verb[Call, Any, Any]] = MappingProxyType({verb.name: verb for verb in (*_TABLE, _DISCOVER)})
"""Every verb by its wire name."""
