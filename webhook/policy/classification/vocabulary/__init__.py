"""What a command, a script's name, an image, a name or a port hints at; weak evidence, called a guess."""
