"""Structure learners: `base` is shared, `dependence` compares columns, `cluster` rows; then one file a learner."""
