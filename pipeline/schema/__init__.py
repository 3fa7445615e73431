"""Records, ids, reason codes and file formats. Every room may import it.

Only `arrow` and `files` import installed packages.
"""
