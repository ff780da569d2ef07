"""The buffers and the ops of a host program."""
