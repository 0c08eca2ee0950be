"""A table in, a posterior out: learn a structure, sample it, average several, go on after a kill."""
