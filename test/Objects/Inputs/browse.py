"""browse.py FOLDER BROWSER [PICTURE]: opens the page in a browser without a screen and looks at what it made."""

import functools
import http.server
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

folder, browser = sys.argv[1:3]


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}/index.html?pause=0"


def browse(*options, milliseconds=10000):
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        command += [f"--user-data-dir={profile}", f"--virtual-time-budget={milliseconds}", *options, address]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)


# Virtual time may run out before a loaded machine has compiled the module.
for budget in (10000, 60000, 300000):
    done = browse("--dump-dom", milliseconds=budget)
    if 'data-done="1"' in done.stdout:
        break
answers = dict(re.findall(r'id="(add|delta)-answers">(.*?)</ul>', done.stdout))
read = {rule: re.findall(r"(.)\? <b>(.)</b> (\S+), (.) (\S+)</li>", text) for rule, text in answers.items()}
assert read and 'data-done="1"' in done.stdout, done.stdout + done.stderr
print(read)
# The last value under each key, of the text in index.html.
assert [key + first for key, first, *_ in read["delta"]] == ["ak", "bo", "ax", "b2", "cq", "d9", "ax", "b2"]
# Nothing is erased: after ak and ax both are there, and as much of one as of the other.
for key, first, weight, second, other in (read["add"][2], read["add"][6]):
    assert key == "a" and {first, second} == {"k", "x"} and weight == other == "1.00"
if len(sys.argv) > 3:
    browse(f"--screenshot={pathlib.Path(sys.argv[3]).resolve()}", "--window-size=1040,800", "--hide-scrollbars")
