"""GET pages of the console, one module per room. None of them changes state (`actions.py` does)."""
