#!/usr/bin/python
"""What is applied on a host."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: status
short_description: Say what is applied and whether it is in force
description:
  - Runs C(spindle status), and where I(prometheus_file) is named writes it for the textfile collector of node_exporter.
options:
  prometheus_file:
    description: A file that ends in C(.prom) in the collector's folder.
    type: path
extends_documentation_fragment:
  - spindle.fleet.program
author:
  - The authors of Spindle
"""

EXAMPLES = r"""
- name: Look whether all is in force
  spindle.fleet.status:
    prometheus_file: /var/lib/prometheus/node-exporter/spindle.prom
  register: standing
"""

RETURN = r"""
applied:
  description: What is applied, as C(spindle status --json) says it.
  returned: always
  type: list
  elements: dict
in_force:
  description: Whether all of it is in force.
  returned: always
  type: bool
"""

import os
import tempfile

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.spindle.fleet.plugins.module_utils.spindle import (
    ARGUMENTS,
    DONE,
    MISSED,
    Spindle,
)


def write(module, path, text):
    """Writes a file as a whole, as the collector may read it at any time; says whether it changed."""
    before = None
    if os.path.exists(path):
        with open(path) as file:
            before = file.read()
    if before == text:
        return False
    if not module.check_mode:
        handle, made = tempfile.mkstemp(dir=module.tmpdir)
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.chmod(made, 0o644)
        module.atomic_move(made, path)
    return True


def main():
    """Entry."""
    arguments = dict(prometheus_file=dict(type="path"))
    arguments.update(ARGUMENTS)
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    spindle = Spindle(module)
    applied, in_force = spindle.applied()
    changed = False
    path = module.params["prometheus_file"]
    if path:
        text = spindle.run(["status", "--prometheus"], (DONE, MISSED))[1]
        changed = write(module, path, text)
    module.exit_json(changed=changed, applied=applied, in_force=in_force)


if __name__ == "__main__":
    main()
