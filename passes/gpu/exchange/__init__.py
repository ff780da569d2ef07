"""Elements that change threads: by shuffles, or through shared memory, and the layouts that they have there."""
