"""Processes that share caches and parameter files with killed ones, full disks and hostile files; ``./dev
hostile``.
"""
