"""How a process lives: its loop, what wakes it, what stops it, and the slot that keeps a second one out. It joins no transaction.

`loop.resident` repeats a step until it is told to stop, and outlives any single fault; `wake_up` saves it the wait for its next poll,
`slots` are locks of the server, `library_log` writes what libraries log. `django_q/` holds all that adapts django-q2.
Begin with `loop.py`.
May import: values and `database`.
"""
