"""One module per command, found by Django by its file name (`python manage.py NAME`); see `connectors.management`."""
