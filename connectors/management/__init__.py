"""Commands: `script/manage …`. A command reads its options, calls one function of the folders below and prints the answer.

It has no transaction and no rule of its own: verbs lie in `operations` and `configuration`, with their audit entries. The modules here
are what several commands share (a namespace and a reason, pause and resume, one work item). Begin reading at the command's file in
`commands/`, whose `add_arguments` lists its verbs. May import every folder; nothing imports a command.
"""
