"""What an agent's hooks call. Law: an agent never waits long for memory, and never fails for it. SPEC 13."""
