"""The ops of a block as passes on xt see them: walks and replacements, patterns, what reads and views what."""
