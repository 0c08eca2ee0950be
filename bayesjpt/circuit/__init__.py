"""Frozen topology as plain arrays: `arrays` defines it, `build` makes it, `check` validates it, `plan` compiles it."""
