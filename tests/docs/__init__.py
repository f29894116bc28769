"""The pages are true of the code: links, names, commands, sentences, and the README from top to bottom."""
