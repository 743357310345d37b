#!/usr/bin/python
"""What a host's storage is."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: inspect
short_description: Say what kind of storage a host has
description:
  - Runs C(spindle inspect) and returns what it found.
  - Returns the I(kind) of the host, which is the same on hosts that can be expected to behave alike.
  - Changes nothing.
options:
  target:
    description: A directory or block device.
    type: str
    required: true
  server:
    description: The database server and its version, which becomes a part of the kind.
    type: str
    default: ""
extends_documentation_fragment:
  - spindle.fleet.program
author:
  - The authors of Spindle
"""

EXAMPLES = r"""
- name: Look at the storage
  spindle.fleet.inspect:
    target: /var/lib/mysql
  register: storage
"""

RETURN = r"""
kind:
  description: Models, buses and sizes of the devices with their firmware, filesystem, kernel and server.
  returned: always
  type: str
traps:
  description: The traps that apply here, by name.
  returned: always
  type: list
  elements: str
inspection:
  description: All that C(spindle inspect --json) said.
  returned: always
  type: dict
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.spindle.fleet.plugins.module_utils.spindle import ARGUMENTS, Spindle


def firmware(name):
    """The firmware of a disk, as sysfs has it; nothing where it has none."""
    for file in ("device/firmware_rev", "device/rev"):
        try:
            with open(os.path.join("/sys/class/block", name, file)) as found:
                return found.read().strip()
        except (IOError, OSError):
            continue
    return ""


def layer(what):
    """A layer of the chain below a target, without names and serial numbers."""
    device = what.get("device")
    if device:
        model = device.get("model") or device.get("bus") or "unknown"
        parts = [model, str(device.get("size")), firmware(device.get("name", ""))]
        return " ".join(part for part in parts if part)
    filesystem = what.get("filesystem") or {}
    return (filesystem.get("mount") or {}).get("kind") or "other"


def kind(inspection, server):
    """What must be the same for one host's verdict to be another's."""
    layers = [layer(it["what"]) for it in inspection["chain"]["layers"]]
    parts = layers + [inspection["machine"]["kernel"], server]
    return " / ".join(part for part in parts if part)


def main():
    """Entry."""
    arguments = dict(
        target=dict(type="str", required=True), server=dict(type="str", default="")
    )
    arguments.update(ARGUMENTS)
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    code, inspection = Spindle(module).read(["inspect", module.params["target"]])
    module.exit_json(
        changed=False,
        rc=code,
        kind=kind(inspection, module.params["server"]),
        traps=[trap.get("id", "") for trap in inspection.get("traps", [])],
        inspection=inspection,
    )


if __name__ == "__main__":
    main()
