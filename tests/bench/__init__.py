"""The figures memd is held to. Law: each is a ratio to a floor, measured turn by turn with it in the same run.

`make bench`, or `python -m tests.bench [--quick] [--json FILE] [--dir DIR] [NAME…]`; see `__main__`. A bench is a
module with `run(quick) -> dict`: its name, its rows (`rows.row`) and whether all are within their bounds.
"""
