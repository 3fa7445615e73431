"""einops, which a mined module may use and must not import: its calls are written out in torch's own."""
