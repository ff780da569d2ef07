"""What is kept on disk from one compilation to the next."""
