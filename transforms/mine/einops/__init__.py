"""Rewrite einops calls in mined modules as torch operations. Only `mine.render_file` and `mine.allowed` import it."""
