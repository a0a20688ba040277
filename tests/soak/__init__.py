"""The soak: senders, disturbances and the verdict of `tests/acceptance/test_soak.py`."""
