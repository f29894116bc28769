"""The command line: a module or a package for each command, and the modules that commands share."""
