"""The full-screen curator. Law: what is deleted is what was asked about, whatever changed meanwhile.

`state` is what is shown and chosen, without a screen; `source` asks the daemon; `app` is the screen, and the only
room that imports textual. SPEC section 14, `browse`.
"""
