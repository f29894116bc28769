"""Saves when its own command asks: without an argument it trains, with one it asks and waits for the answer."""

import sys
from multiprocessing.connection import Client, Listener

import story

SOCKET = "/run/save"


def train():
    with Listener(SOCKET) as asked:
        story.tell("started")
        while True:
            with asked.accept() as caller:
                story.save()
                caller.send("saved")


def ask():
    with Client(SOCKET) as program:
        print(program.recv())


ask() if sys.argv[1:] else train()
