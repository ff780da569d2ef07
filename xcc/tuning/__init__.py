"""Schedules found by measurement."""
