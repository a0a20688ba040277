"""From a checkout to a running system: the private database, the first values, the supervisor.

`script/server` and `script/manage` call `python -m ops_ui.start`. The processes, from the outside in:

- the supervisor (`supervisor.py`) starts the parts (`parts.py`: web, cluster), restarts the dead and stops all of it;
- the keeper (`keeper.py`) runs the private MariaDB as long as any process uses it;
- the preparation (`prepare.py`) is one Django process: checks, migrations, activation, demo, first user.
"""


class CannotStart(Exception):
    """Something outside of Headrace stands in the way of the start; the message is one sentence with the cause and the way out."""
