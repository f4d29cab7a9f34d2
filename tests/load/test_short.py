"""The short form of `make load`: a crowd for a moment, no error but those asked for, no descriptor left behind."""

import pytest

from memd.verbs import VERBS

from . import __main__ as load
from . import asks


@pytest.mark.timeout(120)
def test_a_crowd_harms_nobody_and_leaves_nothing() -> None:
    outcome = load.run(4, 32, seed=1, memory=False)
    assert outcome.faults == []
    assert outcome.after.descriptors < 32  # of 32 clients none is left: what there is are the daemon's own
    assert sum(len(took) for took in outcome.took.values()) > 50
    assert {"babble", "vanished"} <= outcome.done.keys()
    assert "FAULT" not in load.table(outcome)


def test_every_verb_but_stop_is_asked() -> None:
    assert asks.methods() == VERBS.keys() - {"daemon.stop"}
    assert {method for _, method, _ in asks._TABLE} == asks.methods()
