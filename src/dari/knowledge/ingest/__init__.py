"""Files to documents in the store: walk, read, parse, chunk, write, index; watch and reset."""
