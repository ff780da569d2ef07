"""The steps of a compilation: sources, stages, dumps, linking, versions; and what is told when one fails."""
