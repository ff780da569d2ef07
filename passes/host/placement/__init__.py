"""Which results of @main's ops share memory, and which may."""
