"""All that adapts django-q2, which starts the resident loops (docs/decisions/0009-django-q2-carries-loops.md).

README.md beside this file says for each piece which behaviour of django-q2 it works around, and which tests cover it.

Each transaction is one statement on django-q2's own tables. Begin with `resident_tasks.resident_task`, then `cluster.run_cluster`.
May import: values, `database` and the modules of `runtime`, none of which imports this folder.
"""
