"""memd for agents that speak MCP. Law: a process of its own, which reaches the daemon through `memd_client` only.

`tools` says what there is, `spelling` how memd's words name it, `pages` how much comes at once, `belonging` in which
session a call is made, `changes` what happens to the notes; `server` alone knows the MCP SDK. SPEC 13.
"""
