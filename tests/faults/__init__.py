"""The promises of SPEC 4, proved by breaking things: kills, errors, power cuts, and planted bugs (`make faults`)."""
