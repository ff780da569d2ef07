"""What passes of several levels build with, and tell each other by."""
