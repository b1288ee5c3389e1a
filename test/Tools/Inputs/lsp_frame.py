"""Prints the messages of a test, each behind its Content-Length header."""

import sys

prefix = "MESSAGE: "
with open(sys.argv[1], encoding="utf-8") as test:
    for line in test:
        if line.startswith(prefix):
            body = line[len(prefix) :].strip().encode()
            header = f"Content-Length: {len(body)}\r\n\r\n".encode()
            sys.stdout.buffer.write(header + body)
