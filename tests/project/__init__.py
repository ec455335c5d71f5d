"""The project's own files: documents, examples, rules, test drivers."""
