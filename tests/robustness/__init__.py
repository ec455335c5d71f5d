"""Misuse, failures, hostile input, threads, growth."""
