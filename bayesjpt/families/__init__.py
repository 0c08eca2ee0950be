"""The likelihood dictionary: one file a family; `record` is the contract, `registry` the list."""
