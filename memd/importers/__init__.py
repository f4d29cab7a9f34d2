"""Where notes come from. Law: an importer reads and writes nothing; what it read arrives through `Store.commit`."""
