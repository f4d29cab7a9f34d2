"""What an agent's hooks call. Law: an agent never waits long for memory, and never fails for it.

`hook` is what happens at each event, `envelope` what each agent accepts, `entry` whether an agent has memd's MCP
entry, `marks` what one hook leaves for the next. A hook runs at every prompt: nothing here imports more than json, os
and the client. SPEC 13.
"""
