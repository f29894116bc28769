"""The words in commands, scripts' names, images and names that hint at a type; weak evidence, called a guess."""
