"""Foundation: checks of arguments, files, printable text, connections, chats and pretrained weights."""
