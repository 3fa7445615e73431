"""The trusted side of a GPU: replays programs that guests without a GPU have traced. No code of a guest's runs here."""
