"""All that adapts django-q2, which starts the resident loops (docs/decisions/0009-django-q2-carries-loops.md).

Each piece answers one lack of it:

- `resident_tasks`: it knows tasks that end. A loop is a task with a budget that puts its successor into the queue, and one schedule row
  that starts it again after it ended badly; a slot keeps a second one out.
- `cluster_stop`: it waits for running tasks on stop and gives them no signal, so loops watch a flag that the cluster's processes share.
- `cluster`: its head and guard, with that flag, with queues that survive a kill, and with one line of log where the database is away.
- `kill_proof`: its queues hold a semaphore that a SIGKILL takes along; here they are sockets and single words of shared memory.
- `queue_clock`: it compares times of different hosts; here the database's clock decides what is due.

Each transaction is one statement on django-q2's own tables. Begin with `resident_tasks.resident_task`, then `cluster.run_cluster`.
May import: values, `database` and the modules of `runtime`, none of which imports this folder.
"""
