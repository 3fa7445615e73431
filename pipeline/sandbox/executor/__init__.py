"""The trusted side of a GPU: replays programs that guests without a GPU have traced. No guest code runs here."""
