"""Prints the manifest of a bundle, a line per object, and the target of its PTX."""

import json
import re
import struct
import sys

data = open(sys.argv[1], "rb").read()
size = struct.unpack("<8sIIQQQ", data[:40])[4]
manifest = json.loads(data[40 : 40 + size])


def show(key, value, depth=0):
    flat = json.dumps(value)
    if len(flat) < 300 or not isinstance(value, (dict, list)):
        print(f'{"  " * depth}"{key}": {flat}')
        return
    print(f'{"  " * depth}"{key}":')
    for name, item in value.items() if isinstance(value, dict) else enumerate(value):
        show(name, item, depth + 1)


for key in sorted(manifest):
    show(key, manifest[key])
start = (40 + size + 63) // 64 * 64
for number, blob in enumerate(manifest["blobs"]):
    text = data[start + blob["offset"] :][: blob["size"]]
    print(f"blob {number}:", *re.findall(r"\.target \w+", text.decode(errors="ignore")))
