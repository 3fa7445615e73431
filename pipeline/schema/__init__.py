"""Every record, id and reason code, and nothing else. Standard library only (`arrow` excepted)."""
