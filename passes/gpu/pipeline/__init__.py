"""Loops whose later steps' tiles are loaded during this one, and workgroups that compute tile after tile."""
