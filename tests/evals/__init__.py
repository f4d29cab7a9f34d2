"""Evaluations of the focused block. Law: invented stores, labels by their author: figures compare rules."""
