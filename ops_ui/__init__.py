"""The service: its settings, how it starts, how it is watched, and the operations console.

Root: Django's own entry points (settings, urls, wsgi, apps, models), gunicorn's configuration and the watch, whose names users and
schedules know. Folders, lowest first: config, start, backup, monitoring, console. May import connectors and projection.
"""
