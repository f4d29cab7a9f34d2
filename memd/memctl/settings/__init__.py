"""The configs of agents. Law: what is not memd's keeps its bytes, and what cannot be read is left alone.

`jsonc` edits JSON text in place, `toml` appends to TOML text, `plan` says what each agent's config gets, `files`
reads, writes and undoes. SPEC section 14, `setup`.
"""
