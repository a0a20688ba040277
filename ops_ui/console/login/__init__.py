"""The console's login, and what slows down guessing.

Each attempt is counted in one transaction before a password is looked at. Begin at `logins.ConsoleLoginForm`. Imports models only.
"""
