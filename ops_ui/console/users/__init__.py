"""Who may log in, and in which role. Three roles by choice, no other permission, and no way to a superuser.

Each change is one transaction with its audit entry. Begin reading at `accounts`. May import `base`, `lists`, `pages` and `actions`.
"""
