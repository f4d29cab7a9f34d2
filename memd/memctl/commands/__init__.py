"""The commands, one small file each. Law: a file here is imported only when its command was called.

Each has `USAGE` (what follows the command's name in its usage line), `WORDS` (the fewest and the most words
it takes), `options(parser)` for its own options and `run(ctl, options, words)`, which gives the exit code.
The module's docstring is its help text. `front.COMMANDS` is the list of them.
"""
