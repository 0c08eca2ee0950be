"""Circuit and Params with (chain, draw) axes, plus the schema: what every query reads."""
