"""Schedules: the record, what of it only some targets have, and those found by measurement."""
