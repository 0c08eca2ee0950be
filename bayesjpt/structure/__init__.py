"""Structure learners: `base` is shared, `dependence` compares columns, `cluster` rows; then one file a learner."""

LEARNERS = {
    "mspn": "",
    "jpt": "a joint probability tree",
    "wmispn": "",
    "cutset": "a cutset network",
    "tree_mixture": "",
    "hclt": "a hidden tree",
}
"""Names of learners, and what the command line says of each: NAME is the function ``learn_NAME`` of NAME.py."""
