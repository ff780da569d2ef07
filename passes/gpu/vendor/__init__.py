"""Instructions of one vendor: their fragments, text and limits."""
