"""Records, ids, reason codes and file formats.

Every folder may import it. Only `arrow` and `files` import installed packages.
"""
