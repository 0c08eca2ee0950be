"""The learners by name, for all that lists them: public names, `fit`, the command line. It imports none."""

LEARNERS = {
    "mspn": "",
    "jpt": "a joint probability tree",
    "wmispn": "",
    "cutset": "a cutset network",
    "tree_mixture": "",
    "hclt": "a hidden tree",
}
"""Names of learners, and what the command line says of each: NAME is ``learn_NAME`` of ``structure/NAME.py``."""
